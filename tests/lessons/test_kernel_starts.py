"""A kernel whose ports were taken before it could use them is started once more."""

import socket

import pytest
from jupyter_client.provisioning.local_provisioner import LocalPortCache
from small_notebooks import write

from tfviz.lessons import notebooks, worker
from tfviz.lessons.runs import Run


@pytest.mark.parametrize(("kernels", "status"), [(1, "ok"), (2, "failed")])
def test_notebook_runs_in_a_second_kernel(tmp_path, monkeypatch, kernels, status):
    choose, chosen = LocalPortCache.find_available_port, []
    write(tmp_path, "01_one", "assert True")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def choose_taken(cache, ip):
            """Give the last of the five ports of each of the first `kernels` kernels to the server as well."""
            chosen.append(ip)
            taken = len(chosen) % 5 == 0 and len(chosen) <= 5 * kernels
            return server.getsockname()[1] if taken else choose(cache, ip)

        monkeypatch.setattr(LocalPortCache, "find_available_port", choose_taken)
        ended = worker.execute(Run("01_one", {}, notebooks.read(tmp_path / "01_one.ipynb"), ""), tmp_path / "out")
    assert ended.status == status, ended.error
    assert len(chosen) == 10
