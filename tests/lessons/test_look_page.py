"""`tfviz look`: pages of one checkpoint or of two compared, and damaged or unsafe checkpoints."""

import copy
import json
import os
import pickle
import re
import shutil
import sys
from functools import cache

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from small_notebooks import tfviz
from tokenizers.processors import TemplateProcessing

from tfviz.lessons.hf_checkpoint import Checkpoint
from tfviz.text import subwords, train_bpe

transformers = pytest.importorskip("transformers")
TEXT = "the red house by the sea"
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32, "hidden_size": 24}
WEIGHTS = "model.safetensors"


@cache
def tokenizer():
    made = train_bpe([f"{TEXT} and the cat sat there. " * 9], 300).backend_tokenizer
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "bos", "eos", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **named)


def framed_tokenizer():
    """A tokenizer that adds [CLS] before a text and [SEP] after it."""
    framed = copy.deepcopy(tokenizer())
    ids = [(name, framed.convert_tokens_to_ids(name)) for name in ("[CLS]", "[SEP]")]
    framed.backend_tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=ids)
    return framed


def gpt2(seed=0):
    torch.manual_seed(seed)
    size = {"n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 3, "bos_token_id": 2, "eos_token_id": 3}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer()), **size))


def parts_of(kind):
    vocab = {"vocab_size": len(tokenizer())}
    t5 = {"d_model": 24, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3, "decoder_start_token_id": 0}
    vision = {"image_size": 32, "patch_size": 8, **SIZES}
    made = {
        "gpt2": lambda: (gpt2(), tokenizer()),
        "tuned": lambda: (gpt2(1), tokenizer()),
        "bare": lambda: (gpt2(),),
        "bert": lambda: (transformers.BertForMaskedLM(transformers.BertConfig(**vocab, **SIZES)), tokenizer()),
        "classifier": lambda: (
            transformers.BertForSequenceClassification(
                transformers.BertConfig(**vocab, **SIZES, id2label={0: "sad", 1: "so-so", 2: "happy"})
            ),
            framed_tokenizer(),
        ),
        "gpt2 classifier": lambda: (
            transformers.GPT2ForSequenceClassification(
                transformers.GPT2Config(**vocab, n_embd=24, n_layer=2, n_head=3, num_labels=4, pad_token_id=0)
            ),
            tokenizer(),
        ),
        "t5": lambda: (transformers.T5ForConditionalGeneration(transformers.T5Config(**vocab, **t5)), tokenizer()),
        "vit": lambda: (
            transformers.ViTModel(transformers.ViTConfig(**vision)),
            transformers.ViTImageProcessor(size={"height": 32, "width": 32}),
        ),
    }
    return made[kind]()


@pytest.fixture(scope="module")
def checkpoint_folder(tmp_path_factory):
    """`checkpoint_folder("gpt2")`: the folder of a checkpoint of that kind."""
    folder = tmp_path_factory.mktemp("checkpoints")

    def save(kind):
        if not (folder / kind).exists():
            for part in parts_of(kind):
                part.save_pretrained(folder / kind)
        return folder / kind

    return save


@pytest.fixture
def look(tmp_path):
    """`look(model, text)`: what the views of the page are given, and what the command printed."""

    def run(*arguments):
        out = tmp_path / "x.html"
        ended = tfviz("look", *arguments, "--out", out)
        assert ended.exit_code == 0, ended.output
        page = out.read_text(encoding="utf-8")
        assert not re.search("https?://(?!www.w3.org)", page)
        pieces = page.split('class="tfviz-document">')[1:]
        return page, [json.loads(piece.partition("</script>")[0]) for piece in pieces], ended.output

    return run


def words():
    return subwords.as_tokenizer(tokenizer()).tokens(tokenizer()(TEXT)["input_ids"])


def test_look_shows_heads_and_write_studio_of_language_model(checkpoint_folder, look):
    _, (heads, studio), output = look(checkpoint_folder("gpt2"), TEXT)
    assert (heads["kind"], studio["kind"]) == ("heads", "write")
    assert heads["parts"][0]["rows"] == words()
    assert "gpt2: 2 modules look like attention, 2 gave maps" in output
    assert "transformer.h.*.attn: 2 × 3 ×" in output


def test_look_shows_heads_and_fill_studio_of_masked_model(checkpoint_folder, look):
    _, (heads, studio), _ = look(checkpoint_folder("bert"), "the [MASK] house")
    assert (heads["kind"], studio["kind"]) == ("heads", "fill")


def test_look_shows_heads_and_classify_studio_of_classifier(checkpoint_folder, look):
    """With the names of its labels, and with the tokens that its tokenizer adds around a text."""
    _, documents, output = look(checkpoint_folder("classifier"), TEXT)
    assert [document["kind"] for document in documents] == ["heads", "classify"], output
    studio, ids = documents[1], [tokenizer()(name)["input_ids"][0] for name in ("[CLS]", "[SEP]")]
    assert studio["labels"] == ["sad", "so-so", "happy"]
    assert [*studio["special_tokens"].values()] == ids
    _, documents, output = look(checkpoint_folder("gpt2 classifier"), TEXT)
    assert [document["kind"] for document in documents] == ["heads", "classify"], output
    assert (len(documents[1]["labels"]), [*documents[1]["special_tokens"].values()]) == (4, [None, None])


def test_look_shows_both_texts_of_encoder_decoder(checkpoint_folder, look):
    _, (view,), _ = look(checkpoint_folder("t5"), TEXT)
    encoder, decoder, cross = view["parts"]
    assert encoder["rows"] == cross["columns"] == words()
    assert decoder["rows"] == cross["rows"] == decoder["columns"]
    assert len(decoder["rows"]) > len(encoder["rows"])


def test_look_shows_patches_of_vision_model(checkpoint_folder, look, tmp_path):
    Image.new("RGB", (90, 60), "red").save(tmp_path / "a.png")
    _, (view,), _ = look(checkpoint_folder("vit"), "--image", tmp_path / "a.png")
    assert view["parts"][0]["patches"]["rows"] == {"first": 1, "rows": 4, "columns": 4, "upward": False}


def test_compare_ranks_heads_by_change(checkpoint_folder, look):
    page, (view,), _ = look(checkpoint_folder("gpt2"), TEXT, "--compare", checkpoint_folder("tuned"))
    table = page.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [re.findall("<td>(.*?)</td>", row) for row in table.split("<tr>")[1:]]
    one, other = (Checkpoint(str(checkpoint_folder(kind))) for kind in ("gpt2", "tuned"))
    first, second = (next(iter(each.attention(each.prepare(TEXT))[0].values())) for each in (one, other))
    apart = (first.weights - second.weights).abs().sum(-1).mean(-1) / 2
    every = [(float(apart[layer, head]), layer, head) for layer in range(2) for head in range(3)]
    expected = sorted(every, reverse=True)
    assert [(round(amount, 3), layer, head) for amount, layer, head in expected] == [
        (float(amount), int(layer), int(head)) for amount, _, layer, head in rows
    ]
    assert view["arrange"] == "compare"
    assert (view["state"]["layer"], view["state"]["head"]) == expected[0][1:]


def test_compare_encoder_decoders_that_generate_different_texts(checkpoint_folder, look, tmp_path):
    """Under one folder name, too."""
    torch.manual_seed(5)
    for part in parts_of("t5"):
        part.save_pretrained(tmp_path / "other" / "t5")
    assert len(look(checkpoint_folder("t5"), TEXT, "--compare", tmp_path / "other" / "t5")[1]) == 3


def test_checkpoint_name_is_escaped(checkpoint_folder, look, tmp_path):
    folder = shutil.copytree(checkpoint_folder("gpt2"), tmp_path / "<script>alert(1)<")
    page, *_ = look(folder, TEXT)
    assert "<title>&lt;script&gt;alert(1)&lt;: what" in page
    assert "<script>alert" not in page


def test_weights_of_another_task_head_are_ignored(checkpoint_folder, tmp_path):
    folder = shutil.copytree(checkpoint_folder("gpt2"), tmp_path / "gpt2")
    weights(lambda found: found.update({"score.weight": torch.ones(2, 24)}))(folder)
    assert Checkpoint(str(folder)).size == Checkpoint(str(checkpoint_folder("gpt2"))).size


@pytest.mark.parametrize("chosen", ["flash_attention_2", "eager", "sdpa", "paged|sdpa", None])
def test_config_does_not_choose_attention_implementation(chosen, checkpoint_folder, tmp_path):
    """One that names a kernel that is not installed makes transformers fetch another."""
    folder = shutil.copytree(checkpoint_folder("gpt2"), tmp_path / "gpt2")
    config(attn_implementation=chosen)(folder)
    before = transformers.logging.get_verbosity()
    model = Checkpoint(str(folder)).model
    assert model.config._attn_implementation == ("eager" if chosen == "eager" else "sdpa")
    assert transformers.logging.get_verbosity() == before


def test_look_without_transformers_suggests_installation(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    ended = tfviz("look", "gpt2", TEXT)
    assert ended.exit_code == 1
    assert "pip install transformers" in ended.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nobody/none", TEXT], "hf download nobody/none"),
        (
            ["/nowhere/at/all", TEXT],
            "^Error: /nowhere/at/all is not there; give a folder .* or a name on the Hub: gpt2$",
        ),
        (["./gpt2", TEXT], "./gpt2 is not there"),
        (["~/nowhere", TEXT], "~/nowhere is not there"),
        (["a name", TEXT], "a name is not there"),
        (["{gpt2}/config.json", TEXT], "config.json is a file; give a folder"),
        (["{gpt2}", TEXT, "--compare", "/nowhere/at/all"], "/nowhere/at/all is not there"),
        (["{tmp}", TEXT], "must hold config.json"),
        (["{gpt2}"], "reads text: give one"),
        (["{gpt2}", "sea " * 99], "takes 64"),
        (["{vit}"], "--image"),
        (["{vit}", TEXT, "--image", "{tmp}/a.png"], "reads no text"),
        (["{gpt2}", TEXT, "--image", "{tmp}/a.png"], "sees no pictures"),
        (["{vit}", "--image", "{tmp}/b.png"], "there is no file"),
        (["{bare}", TEXT], "needs tokenizer.json"),
        (["nodir", TEXT], "there is no folder nodir here; from the Hub, hf download nodir"),
        (["{gpt2}", TEXT, "--compare", "{gpt2}/../gpt2"], "are one checkpoint; compare with another$"),
        (["gpt2", TEXT, "--compare", "gpt2"], "gpt2 and gpt2 are one checkpoint"),
        (["{gpt2}", TEXT, "--compare", "{t5}"], "no maps of one name and shape"),
    ],
)
def test_invalid_arguments_fail_without_writing(checkpoint_folder, tmp_path, arguments, says):
    Image.new("RGB", (90, 60), "red").save(tmp_path / "a.png")
    kinds = {kind: checkpoint_folder(kind) for kind in ("gpt2", "vit", "bare", "t5")}
    check_failure(tmp_path, [each.format(tmp=tmp_path, **kinds) for each in arguments], says)


def test_folder_that_is_here_is_named(checkpoint_folder, look, monkeypatch):
    monkeypatch.chdir(checkpoint_folder("gpt2"))
    page, _, output = look(".", TEXT)
    assert output.startswith("gpt2: loading\n")
    assert "<title>gpt2: what" in page


def check_failure(tmp_path, arguments, says):
    ended = tfviz("look", *arguments, "--out", tmp_path / "x.html")
    assert ended.exit_code == 1, ended.output
    (error,) = [line for line in ended.output.splitlines() if line.startswith("Error: ")]
    assert re.search(says, error), error
    assert not (tmp_path / "x.html").exists()


class MaliciousPickle:
    def __reduce__(self):
        return os.mkdir, ("run by a pickle",)


def config(**values):
    def change(folder):
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**found, **values}), encoding="utf-8")

    return change


def write(name, content):
    return lambda folder: (folder / name).write_text(content, encoding="utf-8")


def weights(edit):
    def change(folder):
        found = load_file(folder / WEIGHTS)
        edit(found)
        save_file(found, folder / WEIGHTS, metadata={"format": "pt"})

    return change


def cut(folder):
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-99])


def replace_with_pickle(folder):
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(MaliciousPickle()))


def third_layer(found):
    found.update({key.replace(".h.1.", ".h.2."): value.clone() for key, value in found.items() if ".h.1." in key})


KERNEL = "somebody/kernels"
DAMAGED = {
    "weights cut short": (cut, "cannot load GPT2LMHeadModel of"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "cannot load GPT2LMHeadModel of"),
    "a pickle": (replace_with_pickle, "cannot load GPT2LMHeadModel of"),
    "a layer too few": (config(n_layer=3), "holds no transformer.h.2.attn.c_attn.bias, .* and 9 more"),
    "a layer too many": (weights(third_layer), "also holds transformer.h.2"),
    "another width": (
        config(n_embd=12),
        "holds other sizes of .*: its config.json and weights do not belong to one model",
    ),
    "a weight lost": (weights(lambda found: found.pop("transformer.wpe.weight")), r"holds no transformer\.wpe\.weight"),
    "no heads": (config(n_head=0), "cannot load|cannot be run"),
    "a config of nothing": (write("config.json", ""), "cannot load"),
    "another kind": (config(model_type="nobody's"), "cannot load"),
    "a function": (config(architectures=["pipeline"]), "'pipeline' is not a model of transformers"),
    "a module": (config(architectures=["models"]), "'models' is not a model of transformers"),
    "a config's class": (config(architectures=["GPT2Config"]), "'GPT2Config' is not a model of transformers"),
    "a base class": (config(architectures=["PreTrainedModel"]), "'PreTrainedModel' is not a model of transformers"),
    "kernels": (config(attn_implementation=KERNEL), f"attn_implementation is '{KERNEL}', code from elsewhere"),
    "kernels inside": (config(_attn_implementation=KERNEL), "_attn_implementation is .*, code from elsewhere"),
    "kernels by place": (config(attn_implementation={"": KERNEL}), "attn_implementation is .*, code from"),
    "kernels of a part": (config(text_config={"attn_implementation": KERNEL}), "attn_implementation is .*, code from"),
    "kernels of a revision": (config(attn_implementation="flash@main"), "attn_implementation is .*, code from"),
    "experts": (config(_experts_implementation_internal=KERNEL), "code from elsewhere"),
    "quantised": (config(quantization_config={"quant_method": "fp8"}), "quantised weights need code"),
    "quantised inside": (config(a=[{"quantization_config": {"quant_method": "awq"}}]), "quantised weights need code"),
    "code of its own": (config(model_type="strange", auto_map={"AutoConfig": "a.B"}), "brings code of its own"),
    "an adapter": (write("adapter_config.json", '{"base_model_name_or_path": "x/y"}'), "holds an adapter"),
    "a tokenizer of nothing": (write("tokenizer.json", ""), "cannot load AutoTokenizer of"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_checkpoint_fails_without_running_code(case, checkpoint_folder, tmp_path, monkeypatch):
    change, says = DAMAGED[case]
    folder = shutil.copytree(checkpoint_folder("gpt2"), tmp_path / "gpt2")
    change(folder)
    monkeypatch.chdir(tmp_path)
    check_failure(tmp_path, [folder, TEXT], says)
    assert not (tmp_path / "run by a pickle").exists()
