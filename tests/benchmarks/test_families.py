"""Attention maps of two dozen model types of Hugging Face, as `benchmarks/families.py` tries them, match the models."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KINDS = [
    "afmoe", "aria", "bart", "clip_vision_model", "cohere2_moe", "deberta", "electra", "gemma2", "mistral3",
    "gemma3_text", "glm", "gpt_neox_japanese", "granite", "llava", "modernvbert", "mpnet", "nanochat", "nystromformer",
    "olmo", "openai-gpt", "qwen2_audio", "qwen2_moe", "roformer", "vit_mae",
]  # fmt: skip


@pytest.fixture(scope="module")
def families():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("families")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("kind", KINDS)
def test_captured_maps_match_model(families, kind):
    """Under every way to compute attention, and written word by word with every cache that the type has."""
    with torch.no_grad():
        row = families.tried(kind)
    assert int(row["maps"]) > 0
    assert row["eager"] == "equal"
    assert {row[column] for column in families.COLUMNS} <= {"equal", families.NONE}
