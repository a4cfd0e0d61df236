"""What tfviz says of small models beside what TransformerLens said: `benchmarks/transformerlens.py` stored it."""

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
def beside():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("transformerlens")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("kind", KINDS)
def test_as_transformerlens_says(beside, kind):
    stored = json.loads((BENCHMARKS / "results" / "transformerlens.json").read_text(encoding="utf-8"))
    assert list(stored) == KINDS == list(beside.KINDS)
    own = beside.by_tfviz(kind)
    assert len(stored[kind]) >= 7
    for name, values in stored[kind].items():
        expected = torch.tensor(values)
        assert expected.abs().max() > 1e-3, name
        torch.testing.assert_close(own[name].flatten(), expected, atol=1e-4, rtol=0, msg=name)


def test_weights_are_computed_from_whole_numbers(beside):
    """By another way, in Python's own whole numbers."""

    def mixed(number):
        for _ in range(2):
            number = ((number >> 16) ^ number) * 0x45D9F3B & 0xFFFFFFFF
        return (((number >> 16) ^ number) & 0xFFFF) / 0x8000 - 1

    assert beside.uniform(9, 4).tolist() == [mixed(number + 4 * 1_000_003) for number in range(9)]
    values = beside.uniform(10_000, 1)
    assert values.mean().abs() < 0.02
    assert values.std().item() == pytest.approx(3**-0.5, abs=0.01)
