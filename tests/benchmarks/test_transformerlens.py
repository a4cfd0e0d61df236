"""Results of tfviz match those that `benchmarks/transformerlens.py` stored from TransformerLens."""

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KINDS = ["GPT2", "Llama", "GPTNeoX", "Qwen3", "Gemma2"]


@pytest.fixture(scope="module")
def transformerlens_benchmark():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("transformerlens")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("kind", KINDS)
def test_results_match_transformerlens(transformerlens_benchmark, kind):
    stored = json.loads((BENCHMARKS / "results" / "transformerlens.json").read_text(encoding="utf-8"))
    assert list(stored) == KINDS == list(transformerlens_benchmark.KINDS)
    own = transformerlens_benchmark.by_tfviz(kind)
    assert len(stored[kind]) >= 7
    for name, values in stored[kind].items():
        expected = torch.tensor(values)
        assert expected.abs().max() > 1e-3, name
        torch.testing.assert_close(own[name].flatten(), expected, atol=1e-4, rtol=0, msg=name)


def test_uniform_matches_integer_arithmetic(transformerlens_benchmark):
    """By another way, in Python's own whole numbers."""

    def mixed(number):
        for _ in range(2):
            number = ((number >> 16) ^ number) * 0x45D9F3B & 0xFFFFFFFF
        return (((number >> 16) ^ number) & 0xFFFF) / 0x8000 - 1

    assert transformerlens_benchmark.uniform(9, 4).tolist() == [mixed(number + 4 * 1_000_003) for number in range(9)]
    values = transformerlens_benchmark.uniform(10_000, 1)
    assert values.mean().abs() < 0.02
    assert values.std().item() == pytest.approx(3**-0.5, abs=0.01)
