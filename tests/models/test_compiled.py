"""Each model compiles as one graph, without a warning, and computes what it computes eagerly.

In a process of its own, since the checks of shapes of these tests cannot be compiled.
"""

import json
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # in a process of its own

from test_other_device import MODELS, print_failures


def tensors(found):
    return [found] if isinstance(found, torch.Tensor) else [tensor for part in found for tensor in tensors(part)]


@torch.no_grad()
def check(name):
    build, inputs = MODELS[name]
    torch.manual_seed(0)
    model = build().eval()
    torch._dynamo.reset()
    expected = tensors(model(*inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tensors(torch.compile(model, backend="eager", fullgraph=True)(*inputs))
    torch.testing.assert_close(found, expected)


@pytest.fixture(scope="module")
def failures():
    done = subprocess.run([sys.executable, "-W", "ignore", __file__], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", MODELS)
def test_model_compiles_as_one_graph(failures, name):
    assert failures[name] == ""


if __name__ == "__main__":
    print_failures({name: partial(check, name) for name in MODELS})
