"""`tfviz look` at folders that are damaged, or lie: one sentence, and no page; nothing of theirs is run or fetched."""

import json
import os
import pickle
import re
import shutil
from functools import cache

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from tfviz.suite import folder
from tfviz.suite.checkpoint import Checkpoint
from tfviz.suite.cli import main
from tfviz.text import bpe

transformers = pytest.importorskip("transformers")
TEXT = "the red house by the sea"
WEIGHTS = "model.safetensors"


@cache
def tokenizer():
    made = bpe([f"{TEXT} and the cat sat there. " * 9], 300).tokenizer
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", eos_token="[EOS]")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a small GPT-2, which the others are copies of."""
    at = tmp_path_factory.mktemp("whole") / "gpt2"
    torch.manual_seed(3)
    size = {"n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 3, "bos_token_id": 2, "eos_token_id": 3}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer()), **size)).save_pretrained(at)
    tokenizer().save_pretrained(at)
    return at


class Evil:
    def __reduce__(self):
        return os.mkdir, ("run by a pickle",)


def config(**values):
    def change(at):
        found = json.loads((at / "config.json").read_text())
        (at / "config.json").write_text(json.dumps({**found, **values}))

    return change


def write(name, content):
    def change(at):
        (at / name).unlink(missing_ok=True)
        (at / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def weights(edit):
    def change(at):
        found = load_file(at / WEIGHTS)
        edit(found)
        save_file(found, at / WEIGHTS, metadata={"format": "pt"})

    return change


def cut(at):
    found = (at / WEIGHTS).read_bytes()
    (at / WEIGHTS).write_bytes(found[: len(found) // 2])


def linked(name):
    def change(at):
        (at / name).rename(at.parent / "outside")
        (at / name).symlink_to(at.parent / "outside")

    return change


def piped(name):
    def change(at):
        (at / name).unlink()
        os.mkfifo(at / name)

    return change


def pickled(at):
    (at / WEIGHTS).unlink()
    (at / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))


def sharded(*names):
    def change(at):
        (at / WEIGHTS).unlink()
        (at / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": dict.fromkeys("ab", *names)}))

    return change


def layer(found, one, to):
    found.update({key.replace(f".h.{one}.", f".h.{to}."): value.clone() for key, value in found.items()
                  if f".h.{one}." in key})  # fmt: skip


KERNEL = "somebody/kernels"
DAMAGED = {
    "weights cut short": (cut, "cannot have GPT2LMHeadModel of"),
    "no weights": (lambda at: (at / WEIGHTS).unlink(), "cannot have GPT2LMHeadModel of"),
    "empty weights": (write(WEIGHTS, ""), "cannot have GPT2LMHeadModel of"),
    "weights that are text": (write(WEIGHTS, "version https://git-lfs"), "cannot have GPT2LMHeadModel of"),
    "a pickle": (pickled, "are a pickle that may run code"),
    "a layer too few": (config(n_layer=3), "holds no transformer.h.2.attn.c_attn.bias, .* and 9 more: its config.json"),
    "a layer too many": (
        weights(lambda w: layer(w, 1, 2)),
        "also holds transformer.h.2.*: its config.json and its wei",
    ),
    "another width": (
        config(n_embd=12),
        "holds other sizes of .*: its config.json and its weights are not of one model",
    ),
    "a weight lost": (
        weights(lambda w: w.pop("transformer.wpe.weight")),
        r"holds no transformer\.wpe\.weight: its con",
    ),
    "a million layers": (config(n_layer=10**6), "n_layer is 1000000; no model here has more than 2,000"),
    "no heads": (config(n_head=0), "cannot have|cannot be run"),
    "a config of a list": (write("config.json", "[]"), r"config.json of .* holds a list; it must be a dictionary"),
    "a config of nothing": (write("config.json", ""), "config.json is damaged, or no JSON"),
    "a config that is no text": (write("config.json", b"\xff\xfe\x00"), "config.json is damaged, or no JSON"),
    "a deep config": (write("config.json", "[" * 100_000), "config.json is nested too deep"),
    "another kind": (config(model_type="nobody's"), "cannot have AutoConfig of"),
    "a kind that is a number": (config(model_type=5), "cannot have AutoConfig of"),
    "a function": (config(architectures=["pipeline"]), "'pipeline' is no model of transformers"),
    "a module": (config(architectures=["models"]), "'models' is no model of transformers"),
    "a config's class": (config(architectures=["GPT2Config"]), "'GPT2Config' is no model of transformers"),
    "a tokenizer's class": (config(architectures=["GPT2TokenizerFast"]), "is no model of transformers"),
    "a number": (config(architectures=5), "architectures is 5; it must be a list"),
    "a text": (config(architectures="GPT2Model"), "architectures is 'GPT2Model'; it must be a list"),
    "a list of odd things": (config(architectures=[["a"]]), r"architectures\[0\] is a list; it must be a text"),
    "a pair": (config(architectures=[{}, None]), r"architectures\[0\] is a dictionary; it must be a text"),
    "kernels": (config(attn_implementation=KERNEL), f"attn_implementation is '{KERNEL}', code from elsewhere"),
    "kernels inside": (config(_attn_implementation=KERNEL), "_attn_implementation is .*, code from elsewhere"),
    "kernels by place": (config(attn_implementation={"": KERNEL}), "attn_implementation is a dictionary, code from"),
    "kernels of a part": (config(text_config={"attn_implementation": KERNEL}), "attn_implementation is .*, code from"),
    "kernels of a revision": (config(attn_implementation="flash@main"), "attn_implementation is .*, code from"),
    "experts": (config(experts_implementation=KERNEL), "experts_implementation is .*, code from elsewhere"),
    "experts inside": (config(_experts_implementation_internal=KERNEL), "code from elsewhere"),
    "quantised": (config(quantization_config={"quant_method": "fp8"}), "its weights are quantised, which needs code"),
    "quantised inside": (config(a=[{"quantization_config": {"quant_method": "awq"}}]), "its weights are quantised"),
    "code of its own": (config(model_type="strange", auto_map={"AutoConfig": "a.B"}), "brings code of its own"),
    "an adapter": (
        write("adapter_config.json", '{"base_model_name_or_path": "x/y"}'),
        "holds an adapter, which changes",
    ),
    "weights elsewhere": (linked(WEIGHTS), "is a link out of its folder"),
    "a config elsewhere": (linked("config.json"), "is a link out of its folder"),
    "a tokenizer elsewhere": (linked("tokenizer.json"), "is a link out of its folder"),
    "a link to nothing": (lambda at: (at / "a").symlink_to(at / "b"), "neither a file nor a folder"),
    "a link to itself": (lambda at: (at / "a").symlink_to(at / "a"), "neither a file nor a folder|is a link out"),
    "a pipe": (piped(WEIGHTS), "is neither a file nor a folder"),
    "a config that is a pipe": (piped("config.json"), "is no checkpoint: give a folder"),
    "shards above": (sharded("../x.safetensors"), "names '../x.safetensors'; shards are files beside it"),
    "shards anywhere": (sharded("/etc/passwd"), "names '/etc/passwd'; shards are files beside it"),
    "shards that are gone": (sharded("a.safetensors"), "cannot have GPT2LMHeadModel of"),
    "shards of numbers": (sharded(5), r"index.json: weight_map.a is 5; it must be a text"),
    "an index of a list": (write(f"{WEIGHTS}.index.json", "[]"), "weight_map is None; it must be a dictionary"),
    "an index of nothing": (write(f"{WEIGHTS}.index.json", "{"), "index.json is damaged, or no JSON"),
    "a tokenizer of nothing": (write("tokenizer.json", ""), "cannot have AutoTokenizer of"),
    "a tokenizer of odd things": (write("tokenizer.json", '{"model": 5}'), "cannot have AutoTokenizer of"),
    "a tokenizer that is no text": (write("tokenizer.json", b"\xff\xfe"), "cannot have AutoTokenizer of"),
    "a tokenizer's odd config": (write("tokenizer_config.json", "[]"), "cannot have AutoTokenizer of"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_folder_is_told_in_a_sentence(case, whole, tmp_path, monkeypatch):
    change, says = DAMAGED[case]
    at = shutil.copytree(whole, tmp_path / "gpt2")
    change(at)
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(main, ["look", str(at), TEXT, "--out", str(tmp_path / "x.html")])
    assert made.exit_code == 1, made.output
    assert isinstance(made.exception, SystemExit)  # told by the command line, not by a traceback
    (told,) = [line for line in made.output.splitlines() if line.startswith("Error: ")]
    assert made.output.rstrip().endswith(told)
    assert len(told) < 1000
    assert re.search(says, told), told
    assert not (tmp_path / "x.html").exists()
    assert not (tmp_path / "run by a pickle").exists()


def test_the_folder_that_they_are_copies_of_is_looked_at(whole, tmp_path):
    made = CliRunner().invoke(main, ["look", str(whole), TEXT, "--out", str(tmp_path / "x.html")])
    assert made.exit_code == 0, made.output


def test_a_head_that_the_model_does_not_have_is_left_out(whole, tmp_path):
    """As those of other tasks are, in many a checkpoint."""
    at = shutil.copytree(whole, tmp_path / "gpt2")
    weights(lambda w: w.update({"score.weight": torch.ones(2, 24)}))(at)
    assert Checkpoint(str(at)).size == Checkpoint(str(whole)).size


@pytest.mark.parametrize("chosen", ["flash_attention_2", "eager", "sdpa", "paged|sdpa", None])
def test_a_config_does_not_choose_how_attention_is_computed(chosen, whole, tmp_path):
    """One that names a kernel that is not installed makes transformers fetch another."""
    at = shutil.copytree(whole, tmp_path / "gpt2")
    config(attn_implementation=chosen)(at)
    model = Checkpoint(str(at)).model
    assert model.config._attn_implementation == ("eager" if chosen == "eager" else "sdpa")


def test_links_within_the_folder_and_of_the_usual_cache_are_followed(tmp_path):
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "0123", tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "5e4d").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/5e4d")
    assert folder.checked(snapshot) == snapshot


def test_the_verbosity_of_transformers_is_left_as_it_was(whole):
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_info()
    try:
        Checkpoint(str(whole))
        assert transformers.logging.get_verbosity() == transformers.logging.INFO
    finally:
        transformers.logging.set_verbosity(before)
