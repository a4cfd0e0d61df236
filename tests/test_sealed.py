"""Files that tell when they were altered."""

import json
import os
import random

import pytest
import torch

from tfviz import sealed

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(3, dtype=torch.int8), "none": torch.empty(0, 4)}


def same(found):
    return found.keys() == TENSORS.keys() and all(torch.equal(found[n], TENSORS[n]) for n in TENSORS)


def test_what_was_saved_is_loaded(tmp_path):
    sealed.save(tmp_path / "x", {**TENSORS, "half": torch.ones(5, dtype=torch.bfloat16)}, {"words": "漢 </script>"})
    tensors, said = sealed.load(tmp_path / "x")
    assert tensors.pop("half").dtype == torch.bfloat16
    assert same(tensors)
    assert said == {"words": "漢 </script>"}
    value = {"steps": 3, "history": [[1.5, 2]], "name": "\ud800"}
    sealed.write_json(tmp_path / "y", value)
    assert sealed.read_json(tmp_path / "y") == value


def test_one_tensor_under_two_names_is_saved_twice(tmp_path):
    one = torch.arange(6.0)
    sealed.save(tmp_path / "x", {"a": one, "b": one, "c": one[2:5], "d": one.view(2, 3).mT})
    tensors, _ = sealed.load(tmp_path / "x")
    assert tensors["a"].tolist() == tensors["b"].tolist() == [0, 1, 2, 3, 4, 5]
    assert (tensors["c"].tolist(), tensors["d"].tolist()) == ([2, 3, 4], [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize("nested", [300, 500, 900, 990, 2000, 100_000])
def test_json_of_any_depth_is_read_or_told(tmp_path, nested):
    (tmp_path / "x").write_text('{"a": ' + "[" * nested + "]" * nested + "}")
    with pytest.raises(ValueError, match=r"altered or is damaged|nested too deep"):
        sealed.read_json(tmp_path / "x")


@pytest.mark.parametrize("kind", ["tensors", "json"])
def test_every_flipped_bit_is_told(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "tensors":
        sealed.save(path, TENSORS, {"format": "mine", "more": "words"})
    else:
        sealed.write_json(path, {"format": "mine", "numbers": [1, 2.5, "x"]})
    whole, read = path.read_bytes(), sealed.load if kind == "tensors" else sealed.read_json
    before = read(path)
    draw = random.Random(1)
    for place in draw.sample(range(len(whole) * 8), 400):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            after = read(path)
        except ValueError:
            continue
        # what changed means the same, such as white space between the parts of a header
        assert same(after[0]) and after[1] == before[1] if kind == "tensors" else after == before


@pytest.mark.parametrize("read", [sealed.load, sealed.read_json, sealed.plain_json])
def test_what_is_no_file_is_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read(path)


def test_others_files_and_deep_ones_are_told(tmp_path):
    (tmp_path / "deep").write_text("[" * 100_000 + "]" * 100_000)
    (tmp_path / "other").write_text(json.dumps({"steps": 3}))
    (tmp_path / "empty").write_text("")
    for name, says in {"deep": "nested too deep", "other": "altered or is damaged", "empty": "no JSON"}.items():
        with pytest.raises(ValueError, match=says):
            sealed.read_json(tmp_path / name)
        with pytest.raises(ValueError, match="no safetensors file"):
            sealed.load(tmp_path / name)
    from safetensors.torch import save_file

    save_file(TENSORS, tmp_path / "plain")
    with pytest.raises(ValueError, match="has no checksum"):
        sealed.load(tmp_path / "plain")
    with pytest.raises(ValueError, match="JSON"):
        sealed.write_json(tmp_path / "nan", {"loss": float("nan")})


def test_the_same_content_gives_the_same_bytes(tmp_path):
    """Whatever the order in which a hash table goes through it."""
    tensors = {f"tensor {i}": torch.full((i, 2), float(i)) for i in range(1, 9)}
    said = {f"key {i}": 'ä\n\x01"' * i for i in range(9)}
    files = [tmp_path / f"{i}.safetensors" for i in range(4)]
    for file in files:
        sealed.save(file, tensors, said)
    assert len({file.read_bytes() for file in files}) == 1
    opened, told = sealed.load(files[0])
    assert told == said
    assert all(torch.equal(opened[name], one) for name, one in tensors.items())
