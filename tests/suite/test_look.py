"""`tfviz look`: one page for a checkpoint of others, two compared, and what is said where that cannot be."""

import json
import sys
from functools import cache

import pytest
import torch
from click.testing import CliRunner
from PIL import Image

from tfviz.suite.checkpoint import Checkpoint
from tfviz.suite.cli import main
from tfviz.text import bpe, subwords

transformers = pytest.importorskip("transformers")
TEXT = "the red house by the sea"
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32, "hidden_size": 24}


@cache
def tokenizer():
    made = bpe([f"{TEXT} and the cat sat there. " * 9], 300).tokenizer
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "bos", "eos", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **named)


def vision(**more):
    return {"image_size": 32, "patch_size": 8, **SIZES, **more}


def gpt2(seed):
    torch.manual_seed(seed)
    size = {"n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 3, "bos_token_id": 2, "eos_token_id": 3}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer()), **size))


def kinds():
    vocab = {"vocab_size": len(tokenizer())}
    square = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    t5 = {"d_model": 24, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3, "decoder_start_token_id": 0}
    return {
        "gpt2": lambda: (gpt2(0), tokenizer()),
        "tuned": lambda: (gpt2(1), tokenizer()),
        "bert": lambda: (transformers.BertForMaskedLM(transformers.BertConfig(**vocab, **SIZES)), tokenizer()),
        "t5": lambda: (transformers.T5ForConditionalGeneration(transformers.T5Config(**vocab, **t5)), tokenizer()),
        "vit": lambda: (transformers.ViTModel(transformers.ViTConfig(**vision())), square),
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """`saved("gpt2")`: the folder of a checkpoint of that kind."""
    folder = tmp_path_factory.mktemp("checkpoints")

    def made(kind):
        if not (folder / kind).exists():
            for part in kinds()[kind]():
                part.save_pretrained(folder / kind)
        return folder / kind

    return made


def run(*arguments):
    return CliRunner().invoke(main, ["look", *map(str, arguments)])


def page(result, path):
    assert result.exit_code == 0, result.output
    text = path.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    return text


def parts(text):
    """What each view of a page is told."""
    pieces = text.split('class="tfviz-document">')[1:]
    return [json.loads(piece.partition("</script>")[0]) for piece in pieces]


def test_a_language_model_and_its_studio(saved, tmp_path):
    made = run(saved("gpt2"), TEXT, "--out", tmp_path / "x.html")
    heads, studio = parts(page(made, tmp_path / "x.html"))
    assert (heads["kind"], studio["kind"]) == ("heads", "write")
    assert heads["parts"][0]["rows"] == studio_words()
    assert "gpt2: 2 modules look like attention, 2 gave maps" in made.output
    assert "transformer.h.*.attn: 2 × 3 ×" in made.output


def studio_words():
    return subwords.own(tokenizer()).words(tokenizer()(TEXT)["input_ids"])


def test_hidden_words_are_filled(saved, tmp_path):
    heads, studio = parts(
        page(run(saved("bert"), "the [MASK] house", "--out", tmp_path / "x.html"), tmp_path / "x.html")
    )
    assert (heads["kind"], studio["kind"]) == ("heads", "fill")


def test_an_encoder_decoder_has_the_words_of_both_texts(saved, tmp_path):
    (told,) = parts(page(run(saved("t5"), TEXT, "--out", tmp_path / "x.html"), tmp_path / "x.html"))
    encoder, decoder, cross = told["parts"]
    assert encoder["rows"] == cross["cols"] == studio_words()
    assert decoder["rows"] == cross["rows"] == decoder["cols"]
    assert len(decoder["rows"]) > len(encoder["rows"])


def test_a_model_that_sees(saved, tmp_path):
    Image.new("RGB", (90, 60), "red").save(tmp_path / "a.png")
    made = run(saved("vit"), "--image", tmp_path / "a.png", "--out", tmp_path / "x.html")
    (told,) = parts(page(made, tmp_path / "x.html"))
    assert told["parts"][0]["places"]["rows"] == {"first": 1, "down": 4, "across": 4, "upward": False}


def test_two_checkpoints_by_what_changed(saved, tmp_path):
    made = run(saved("gpt2"), TEXT, "--compare", saved("tuned"), "--out", tmp_path / "x.html")
    text = page(made, tmp_path / "x.html")
    (told,) = parts(text)
    assert told["arrange"] == "compare"
    rows = [
        row.split("</td><td>") for row in text.partition("<tbody>")[2].partition("</tbody>")[0].split("<tr><td>")[1:]
    ]
    one, other = (Checkpoint(str(saved(kind))) for kind in ("gpt2", "tuned"))
    first, second = (next(iter(some.groups(some.given(TEXT))[0].values())) for some in (one, other))
    apart = (first.weights - second.weights).abs().sum(-1).mean(-1) / 2
    expected = sorted(
        ((float(apart[layer, head]), layer, head) for layer in range(2) for head in range(3)), reverse=True
    )
    assert [(int(row[2]), int(row[3].partition("<")[0])) for row in rows] == [found[1:] for found in expected]
    assert [float(row[0]) for row in rows] == [round(found[0], 3) for found in expected]
    assert (told["state"]["layer"], told["state"]["head"]) == expected[0][1:]


def test_two_that_write_otherwise_are_compared_on_one_text(saved, tmp_path):
    """Under one folder name, too."""
    torch.manual_seed(5)
    for part in kinds()["t5"]():
        part.save_pretrained(tmp_path / "other" / "t5")
    made = run(saved("t5"), TEXT, "--compare", tmp_path / "other" / "t5", "--out", tmp_path / "x.html")
    assert len(parts(page(made, tmp_path / "x.html"))) == 3


def test_a_text_longer_than_the_model_is_said(saved, tmp_path):
    made = run(saved("gpt2"), "sea " * 99, "--out", tmp_path / "x.html")
    assert made.exit_code == 1
    assert "takes 64: give a shorter one" in made.output


def test_names_are_text(saved, tmp_path):
    folder = tmp_path / "<script>alert(1)<"
    saved("gpt2").rename(folder)
    try:
        text = page(run(folder, TEXT, "--out", tmp_path / "x.html"), tmp_path / "x.html")
    finally:
        folder.rename(saved("bert").parent / "gpt2")
    assert "<title>&lt;script&gt;alert(1)&lt;: what" in text
    assert "<script>alert" not in text


def broken(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


CASES = {
    "a name that is nowhere": (lambda saved, at: ["nobody/none", TEXT], "give the folder"),
    "a file": (lambda saved, at: [saved("gpt2") / "config.json", TEXT], "is no checkpoint: give a folder"),
    "an empty folder": (lambda saved, at: [at, TEXT], "is no checkpoint: give a folder"),
    "no text": (lambda saved, at: [saved("gpt2")], "reads text: give one"),
    "no picture": (lambda saved, at: [saved("vit")], "give one with --image"),
    "a picture for a reader": (lambda saved, at: [saved("gpt2"), TEXT, "--image", at / "a.png"], "leave --image away"),
    "no such picture": (lambda saved, at: [saved("vit"), "--image", at / "b.png"], "there is no file"),
    "no tokenizer": (lambda saved, at: [bare(saved, at), TEXT], "needs its tokenizer"),
    "code of its own": (lambda saved, at: [foreign(saved, at), TEXT], "brings code of its own"),
    "other kinds": (lambda saved, at: [saved("gpt2"), TEXT, "--compare", saved("t5")], "no maps of one name and shape"),
}


def bare(saved, at):
    kinds()["gpt2"]()[0].save_pretrained(at / "bare")
    return at / "bare"


def foreign(saved, at):
    def change(config):
        config.update(model_type="strange", auto_map={"AutoConfig": "code.Config", "AutoModel": "code.Model"})

    return broken(bare(saved, at), change)


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_is_said_and_nothing_is_written(saved, tmp_path, case):
    Image.new("RGB", (90, 60), "red").save(tmp_path / "a.png")
    given, says = CASES[case]
    made = run(*given(saved, tmp_path), "--out", tmp_path / "x.html")
    assert made.exit_code == 1
    assert says in made.output
    assert "Traceback" not in made.output
    assert not (tmp_path / "x.html").exists()


def test_without_transformers_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    made = run("gpt2", TEXT)
    assert made.exit_code == 1
    assert "pip install transformers" in made.output
