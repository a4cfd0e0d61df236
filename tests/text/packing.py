"""Files and archives for tests, folders for data and cache, and a loopback server that publishes corpora.

PYTEST_DONT_REWRITE: test modules name this as their plugin.
"""

import gc
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tfviz.text import corpora


def encoded(content):
    return content if isinstance(content, bytes) else content.encode()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(content))
    return path


def folder(path, files):
    for name, content in files.items():
        write(path / name, content)


def tar(files, links=()):
    """A .tar.gz; `links` are pairs of a name and a type of entry."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(encoded(content))
            archive.addfile(entry, io.BytesIO(encoded(content)))
        for name, kind in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "../../../secret"
            archive.addfile(entry)
    return buffer.getvalue()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty TFVIZ_DATA; the cache beside it is empty, too."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("TFVIZ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "data"


@pytest.fixture
def publish(data, tmp_path, monkeypatch):
    """Publish files in place of those of a corpus; returns the list of files that were requested."""
    requested = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requested.append(self.path.rpartition("/")[2])

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=tmp_path / "www")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()

        def enter(name, contents, sha256=None):
            corpus = corpora.CORPORA[name]
            files = []
            for file in corpus.files:
                content = encoded(contents.get(Path(file.path).name, ""))
                if content:
                    write(tmp_path / "www" / file.path, content)
                url = f"http://127.0.0.1:{server.server_port}/{file.path}"
                files.append(replace(file, url=url, sha256=sha256 or hashlib.sha256(content).hexdigest()))
            monkeypatch.setitem(corpora.CORPORA, name, replace(corpus, files=tuple(files)))
            return requested

        yield enter
        server.shutdown()
        thread.join()
    gc.collect()  # requests leaves the socket of a refused download to the garbage collector
