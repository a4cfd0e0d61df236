"""Folders that lie: names that lead out, sizes that no file bears out, pipes, links, nesting, numbers that are none."""

import json
import os

import pytest
import torch
from safetensors.torch import save_file

from tfviz.models import pretrained

SIZES = {"vocab_size": 11, "n_positions": 7, "n_embd": 6, "n_layer": 2, "n_head": 3}
INDEX = "model.safetensors.index.json"


def weights():
    torch.manual_seed(3)
    shapes = {"wte.weight": (11, 6), "wpe.weight": (7, 6), "ln_f.weight": (6,), "ln_f.bias": (6,)}
    for layer in range(2):
        for name, wide in {"attn.c_attn": (6, 18), "attn.c_proj": (6, 6), "mlp.c_fc": (6, 24)}.items():
            shapes |= {f"h.{layer}.{name}.weight": wide, f"h.{layer}.{name}.bias": wide[1:]}
        shapes |= {f"h.{layer}.mlp.c_proj.weight": (24, 6), f"h.{layer}.mlp.c_proj.bias": (6,)}
        shapes |= {f"h.{layer}.{norm}.{part}": (6,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")}
    return {name: torch.rand(shape) for name, shape in shapes.items()}


def written(folder, tensors=None, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors or weights(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**SIZES, **settings}))
    return folder


def sharded(folder, *names):
    """An index that names these files, and the first of them there."""
    written(folder)
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": {f"a{n}": name for n, name in enumerate(names)}}))
    return folder


def test_the_folder_that_the_others_are_made_from_is_read(tmp_path):
    whole = pretrained.gpt2(written(tmp_path / "whole"))
    shards = pretrained.gpt2(sharded(tmp_path / "parts", "part.safetensors"))
    assert torch.equal(whole.tokens.weight, weights()["wte.weight"])
    assert torch.equal(whole.blocks[1].feed_forward[2].weight, weights()["h.1.mlp.c_proj.weight"].T)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), shards.parameters(), strict=True))


def test_an_index_names_files_of_its_folder_only(tmp_path):
    outside = written(tmp_path / "outside") / "model.safetensors"
    for name in ("../outside/model.safetensors", str(outside), "a/../../outside/model.safetensors", "..", "", ".", 3):
        with pytest.raises(ValueError, match=r"names .*; shards are files beside it"):
            pretrained.gpt2(sharded(tmp_path / "parts", "part.safetensors", name))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_link_out_of_the_folder_is_not_followed(tmp_path, name):
    outside, inside = written(tmp_path / "outside"), written(tmp_path / "inside")
    (inside / name).unlink()
    (inside / name).symlink_to(outside / name)
    with pytest.raises(ValueError, match=f"{name} is a link out of its folder"):
        pretrained.gpt2(inside)


def test_links_within_the_folder_and_those_of_the_usual_cache_are_followed(tmp_path):
    blobs = tmp_path / "models--x" / "blobs"
    snapshot = written(tmp_path / "models--x" / "snapshots" / "0123")
    blobs.mkdir()
    (snapshot / "model.safetensors").rename(blobs / "5e4d")
    (snapshot / "model.safetensors").symlink_to("../../blobs/5e4d")
    (snapshot / "config.json").rename(snapshot / "kept.json")
    (snapshot / "config.json").symlink_to("kept.json")
    (tmp_path / "way").symlink_to(snapshot)
    assert torch.equal(pretrained.gpt2(tmp_path / "way").tokens.weight, weights()["wte.weight"])


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", INDEX, "part.safetensors"])
def test_a_pipe_or_a_folder_is_no_file(tmp_path, name):
    for place, make in ((tmp_path / "pipe", os.mkfifo), (tmp_path / "folder", os.mkdir)):
        sharded(place, "part.safetensors") if "part" in name or name == INDEX else written(place)
        (place / name).unlink()
        make(place / name)
        with pytest.raises(FileNotFoundError, match=rf"no {'model.safetensors' if name == INDEX else name} in"):
            pretrained.gpt2(place)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("size", [10**9, 10**12, 10**30, 0, -1, 2.0, "2", [2], None, True])
def test_a_size_that_the_weights_do_not_bear_out(tmp_path, name, size):
    with pytest.raises(ValueError, match=rf"^{name} is .*config\.json"):
        pretrained.gpt2(written(tmp_path, **{name: size}))


@pytest.mark.parametrize("share", [float("nan"), -0.1, 1, 2, "0.1", [0.1], None, True])
def test_a_dropout_that_is_none(tmp_path, share):
    with pytest.raises(ValueError, match=r"resid_pdrop is .*; it must be a number, at least 0 and below 1"):
        pretrained.gpt2(written(tmp_path, resid_pdrop=share))


@pytest.mark.parametrize("activation", [None, ["relu"], {}, 3])
def test_an_activation_that_is_none(tmp_path, activation):
    with pytest.raises(ValueError, match="activation_function is"):
        pretrained.gpt2(written(tmp_path, activation_function=activation))


@pytest.mark.parametrize("name", ["config.json", INDEX])
def test_json_nested_without_end_is_told(tmp_path, name):
    folder = sharded(tmp_path, "part.safetensors")
    (folder / name).write_text("[" * 100_000)
    with pytest.raises(ValueError, match=f"{name} is not what transformers writes: .*nested too deep"):
        pretrained.gpt2(folder)


def test_weights_that_are_no_weights(tmp_path):
    whole = {**weights(), "wpe.weight": torch.ones(7, 6, dtype=torch.int8)}
    with pytest.raises(ValueError, match=r"wpe.weight in .* is of I8; weights are of F64, F32"):
        pretrained.gpt2(written(tmp_path / "numbers", whole))
    none = {**weights(), "ln_f.bias": torch.full((6,), torch.nan)}
    with pytest.raises(ValueError, match=r"ln_f.bias in .* holds NaN"):
        pretrained.gpt2(written(tmp_path / "nan", none))


def test_two_tensors_of_one_name(tmp_path):
    twice = {**weights(), "transformer.ln_f.bias": torch.zeros(6)}
    with pytest.raises(ValueError, match=r"ln_f.bias in .* stands in .*, too"):
        pretrained.gpt2(written(tmp_path, twice))
