"""Checkpoints of others: the same logits as the library that wrote them, and what cannot be read."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tfviz import generate
from tfviz.models import BERT, GPT, pretrained

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

IDS = torch.tensor([[4, 9, 1, 10, 3], [7, 2, 6, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
GPT2 = {
    "vocab_size": 11,
    "n_positions": 7,
    "n_embd": 6,
    "n_layer": 2,
    "n_head": 3,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BERT_CONFIG = {
    "vocab_size": 11,
    "max_position_embeddings": 7,
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 5,
    "layer_norm_eps": 0.03,  # large enough to be missed
}


def random(model):
    torch.manual_seed(5)
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, mean=("Norm" in name or "ln_" in name) and "weight" in name, std=0.5)
    return model.eval()


def gpt2(**settings):
    return random(transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**GPT2, **settings})))


def bert(kind="BertForPreTraining"):
    return random(getattr(transformers, kind)(transformers.BertConfig(**BERT_CONFIG)))


def saved(model, folder, **settings):
    """A checkpoint as transformers writes it, with other settings in its config."""
    model.save_pretrained(folder)
    return change(folder, **settings)


def change(folder, **settings):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **settings}))
    return folder


def rewrite(folder, edit):
    """The same checkpoint with `edit(tensors)` instead of its tensors."""
    file = folder / "model.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in edit(load_file(file)).items()}, file)
    return folder


def close(given, expected):
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-5)


def guesses(model):
    """All that a BERT of transformers says, as `Guess` has it: no before yes."""
    with torch.no_grad():
        said = model(IDS, token_type_ids=SEGMENTS, attention_mask=(IDS != 0).long())
    return said.prediction_logits, said.seq_relationship_logits.flip(-1)


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "gelu", "relu"])
def test_gpt2_has_its_logits(tmp_path, activation):
    theirs = gpt2(activation_function=activation, resid_pdrop=0.3)
    ours = pretrained.gpt2(saved(theirs, tmp_path))
    with torch.no_grad():
        close(ours(IDS), theirs(IDS).logits)
    assert isinstance(ours, GPT)
    assert not ours.training
    assert (ours.context, ours.dropout.p, ours.blocks[1].dropout.p) == (7, 0.3, 0.3)
    assert all(parameter.requires_grad and parameter.dtype == torch.float32 for parameter in ours.parameters())


def test_bert_has_its_logits(tmp_path):
    theirs = bert()
    ours = pretrained.bert(saved(theirs, tmp_path))
    with torch.no_grad():
        given = ours(IDS, SEGMENTS)
    close(tuple(given), guesses(theirs))
    assert isinstance(ours, BERT)
    assert not ours.training
    assert (given.follows[:, 0] - given.follows[:, 1]).abs().min() > 1e-2  # so that their order matters


@pytest.mark.parametrize("model", [gpt2, bert])
def test_shards_are_one_checkpoint(tmp_path, model):
    theirs, whole, parts = model(), tmp_path / "whole", tmp_path / "parts"
    theirs.save_pretrained(whole)
    theirs.save_pretrained(parts, max_shard_size=1000)
    assert len(list(parts.glob("*.safetensors"))) > 3
    read = pretrained.gpt2 if model is gpt2 else pretrained.bert
    expected = read(whole).state_dict()
    for name, tensor in read(parts).state_dict().items():
        assert torch.equal(tensor, expected[name])


def old_gpt2(tensors):
    """As the first checkpoint was written: no prefix, masks among the weights."""
    masks = {"h.1.attn.bias": torch.ones(1, 1, 7, 7).tril(), "h.1.attn.masked_bias": torch.tensor(-1e4)}
    return {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()} | masks


def untied_gpt2(tensors):
    """With the output weights written a second time."""
    return {**tensors, "lm_head.weight": tensors["transformer.wte.weight"].clone()}


def headless_gpt2(tensors):
    """With the output weights written instead of the embeddings, which they are."""
    return {name.replace("transformer.wte", "lm_head"): tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize("edit", [old_gpt2, untied_gpt2, headless_gpt2])
def test_gpt2_by_other_names(tmp_path, edit):
    theirs = gpt2()
    with torch.no_grad():
        close(pretrained.gpt2(rewrite(saved(theirs, tmp_path), edit))(IDS), theirs(IDS).logits)


def old_bert(tensors):
    """As the first checkpoints were converted: norms in TensorFlow's words, a counter among the weights."""
    words = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for new, old in words.items():
        tensors = {name.replace(new, old): tensor for name, tensor in tensors.items()}
    assert sum("gamma" in name for name in tensors) == 6
    return {**tensors, "bert.embeddings.position_ids": torch.arange(7)[None]}


def untied_bert(tensors):
    """With the output layer written as a module of its own."""
    table, bias = tensors["bert.embeddings.word_embeddings.weight"].clone(), tensors["cls.predictions.bias"].clone()
    return {**tensors, "cls.predictions.decoder.weight": table, "cls.predictions.decoder.bias": bias}


def renamed_bert(tensors):
    """With the bias in the output layer only."""
    return {name.replace("predictions.bias", "predictions.decoder.bias"): tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize("edit", [old_bert, untied_bert, renamed_bert])
def test_bert_by_other_names(tmp_path, edit):
    theirs = bert()
    with torch.no_grad():
        close(tuple(pretrained.bert(rewrite(saved(theirs, tmp_path), edit))(IDS, SEGMENTS)), guesses(theirs))


@pytest.mark.parametrize("type", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_float32(tmp_path, type):
    halved = lambda tensors: {name: tensor.to(type) for name, tensor in tensors.items()}  # noqa: E731
    ours = pretrained.gpt2(rewrite(saved(gpt2(), tmp_path), halved))
    assert torch.equal(ours.tokens.weight, gpt2().transformer.wte.weight.to(type).float())
    assert ours(IDS).dtype == torch.float32


def test_settings_that_are_not_said_are_the_usual_ones(tmp_path):
    theirs = gpt2()
    config = json.loads((saved(theirs, tmp_path) / "config.json").read_text())
    sizes = {name: config[name] for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")}
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    with torch.no_grad():
        close(pretrained.gpt2(tmp_path)(IDS), theirs(IDS).logits)


def test_it_writes_what_the_original_writes(tmp_path):
    theirs, prompt = gpt2(), torch.tensor([3, 1])
    written = list(generate.ids(pretrained.gpt2(saved(theirs, tmp_path)), prompt, 5, generate.GREEDY))
    text = prompt[None]
    for _ in range(5):
        with torch.no_grad():
            text = torch.cat((text, theirs(text).logits[:, -1:].argmax(-1)), dim=1)
    assert written == text[0, 2:].tolist()


@pytest.mark.parametrize(
    ("kind", "fresh"),
    [
        ("BertModel", ["word_bias", "to_word.weight", "word_norm.bias", "to_follows.weight"]),
        ("BertForMaskedLM", ["pooler.weight", "pooler.bias", "to_follows.weight", "to_follows.bias"]),
        ("BertForNextSentencePrediction", ["word_bias", "to_word.weight", "word_norm.bias"]),
    ],
)
def test_heads_that_are_not_there_start_fresh(tmp_path, kind, fresh):
    theirs = bert(kind)
    with pytest.warns(UserWarning, match=r"train them before you use them") as warned:
        ours = pretrained.bert(saved(theirs, tmp_path))
    assert len(warned) == 1
    assert all(f" {name}" in str(warned[0].message) for name in fresh)
    parameters = dict(ours.named_parameters())
    assert all(parameters[name].abs().max() < 0.2 for name in fresh)
    with torch.no_grad():
        said = theirs(IDS, token_type_ids=SEGMENTS, attention_mask=(IDS != 0).long())
        words, follows = ours(IDS, SEGMENTS)
        states = ours.encode(IDS, SEGMENTS)
    if kind == "BertModel":
        close((states, ours.pool(states)), (said.last_hidden_state, said.pooler_output))
    else:
        close(words if kind == "BertForMaskedLM" else follows.flip(-1), said.logits)


def test_heads_of_other_tasks_are_left_out(tmp_path):
    theirs = bert("BertForSequenceClassification")
    with (
        pytest.warns(UserWarning, match=r"classifier.bias, classifier.weight in .* left out"),
        pytest.warns(UserWarning, match=r"train them before you use them"),
    ):
        ours = pretrained.bert(saved(theirs, tmp_path))
    with torch.no_grad():
        said = theirs.bert(IDS, token_type_ids=SEGMENTS, attention_mask=(IDS != 0).long())
        close(ours.pool(ours.encode(IDS, SEGMENTS)), said.pooler_output)


GPT2_SETTINGS = {
    "model_type": ("llama", "model_type is 'llama' .*only those with 'gpt2' can"),
    "activation_function": ("swish", "is 'swish'; it can be gelu_new, gelu_pytorch_tanh, gelu, relu"),
    "layer_norm_epsilon": (1e-6, "layer_norm_epsilon is 1e-06 .*only those with 1e-05 can"),
    "scale_attn_weights": (False, "scale_attn_weights is False .*only those with True can"),
    "scale_attn_by_inverse_layer_idx": (True, "inverse_layer_idx is True .*only those with False can"),
    "n_inner": (25, "n_inner is 25; .* = 24 wide inside"),
    "n_layer": (0, "n_layer is 0 .*whole number, at least 1"),
    "n_head": ("3", "n_head is '3' .*whole number"),
    "n_positions": (None, "n_positions is None .*whole number"),
    "n_embd": (7, "width 7 is not divisible by 3 heads"),
}
BERT_SETTINGS = {
    "model_type": ("roberta", "model_type is 'roberta' .*only those with 'bert' can"),
    "hidden_act": ("relu", "hidden_act is 'relu' .*only those with 'gelu' can"),
    "position_embedding_type": (
        "relative_key",
        "position_embedding_type is 'relative_key' .*only those with 'absolute' can",
    ),
    "type_vocab_size": (3, "type_vocab_size is 3 .*only those with 2 can"),
    "pad_token_id": (1, "pad_token_id is 1 .*only those with 0 can"),
    "is_decoder": (True, "is_decoder is True .*only those with False can"),
}


@pytest.mark.parametrize("name", GPT2_SETTINGS)
def test_another_gpt2_is_refused(tmp_path, name):
    value, words = GPT2_SETTINGS[name]
    with pytest.raises(ValueError, match=words):
        pretrained.gpt2(saved(gpt2(), tmp_path, **{name: value}))


@pytest.mark.parametrize("name", BERT_SETTINGS)
def test_another_bert_is_refused(tmp_path, name):
    value, words = BERT_SETTINGS[name]
    with pytest.raises(ValueError, match=words):
        pretrained.bert(saved(bert(), tmp_path, **{name: value}))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"vocab_size": 12}, r"^wte.weight is \[11, 6\] in .*; its config.json asks for \[12, 6\]$"),
        ({"n_positions": 5}, r"^wpe.weight is \[7, 6\] in .* asks for \[5, 6\]$"),
        ({"n_embd": 9}, r"^wte.weight is \[11, 6\] in .* asks for \[11, 9\]$"),
        ({"n_layer": 3}, r"holds no h.2.ln_1.weight \[6\], which its config.json asks for$"),
        ({"n_layer": 1}, r"holds h.1.attn.c_attn.bias, for which a model of its config.json has no place$"),
    ],
)
def test_weights_of_another_shape_are_refused(tmp_path, setting, words):
    with pytest.raises(ValueError, match=words):
        pretrained.gpt2(saved(gpt2(), tmp_path, **setting))


@pytest.mark.parametrize(
    ("name", "edit", "words"),
    [
        ("h.0.attn.c_attn.weight", lambda x: x[:, :12], r"^h.0.attn.c_attn.weight is \[6, 12\] .* asks for \[6, 18\]$"),
        ("h.1.mlp.c_fc.weight", lambda x: x.T, r"^h.1.mlp.c_fc.weight is \[24, 6\] .* asks for \[6, 24\]$"),
        ("h.1.mlp.c_proj.bias", lambda x: None, r"holds no h.1.mlp.c_proj.bias \[6\], which"),
        ("h.1.attn.lora.weight", lambda x: torch.ones(2), r"holds h.1.attn.lora.weight, for which .* no place$"),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(tmp_path, name, edit, words):
    def edited(tensors):
        new = edit(tensors.pop(f"transformer.{name}", None))
        return tensors if new is None else {**tensors, f"transformer.{name}": new}

    with pytest.raises(ValueError, match=words):
        pretrained.gpt2(rewrite(saved(gpt2(), tmp_path), edited))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bert.encoder.layer.1.attention.self.key.weight", r"key.weight is \[5, 6\] .* asks for \[6, 6\]$"),
        ("cls.seq_relationship.weight", r"^cls.seq_relationship.weight is \[1, 6\] .* asks for \[2, 6\]$"),
    ],
)
def test_a_part_of_bert_that_does_not_fit_is_named(tmp_path, name, words):
    with pytest.raises(ValueError, match=words):
        pretrained.bert(rewrite(saved(bert(), tmp_path), lambda tensors: {**tensors, name: tensors[name][:-1]}))


def test_half_a_head_is_an_error(tmp_path):
    without = lambda tensors: {name: one for name, one in tensors.items() if name != "bert.pooler.dense.bias"}  # noqa: E731
    with pytest.raises(ValueError, match=r"holds no pooler.dense.bias \[6\]"):
        pretrained.bert(rewrite(saved(bert(), tmp_path), without))


@pytest.mark.parametrize(
    ("read", "model", "alias"),
    [(pretrained.gpt2, gpt2, "lm_head.weight"), (pretrained.bert, bert, "cls.predictions.decoder.weight")],
)
def test_other_output_weights_than_embeddings_are_refused(tmp_path, read, model, alias):
    saved(model(), tmp_path)
    with pytest.raises(ValueError, match=rf"{alias} and .*(wte|word_embeddings).weight differ in .*tied"):
        read(rewrite(tmp_path, lambda tensors: {**tensors, alias: torch.ones(11, 6)}))


@pytest.mark.parametrize(("read", "example"), [(pretrained.gpt2, "gpt2"), (pretrained.bert, "bert-base-uncased")])
def test_nothing_there_says_how_to_get_it(tmp_path, read, example):
    with pytest.raises(
        FileNotFoundError, match=rf"no config.json in .*there, .*: hf download \S+/{example} config.json"
    ):
        read(tmp_path / "there")
    saved(gpt2() if read is pretrained.gpt2 else bert(), tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(
        FileNotFoundError, match=r"no model.safetensors in .* holds config.json, .*pytorch_model.bin; get"
    ):
        read(str(tmp_path))


def test_a_shard_that_is_not_there_is_named(tmp_path):
    gpt2().save_pretrained(tmp_path, max_shard_size=1000)
    gone = sorted(tmp_path.glob("model-*.safetensors"))[1]
    gone.unlink()
    with pytest.raises(FileNotFoundError, match=f"there is no {gone.name} in"):
        pretrained.gpt2(tmp_path)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs", b"\x08\0\0\0\0\0\0\0not JSON"])
def test_a_damaged_file_is_named(tmp_path, content):
    (saved(gpt2(), tmp_path) / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model.safetensors is damaged, or only a pointer .*; get it again"):
        pretrained.gpt2(tmp_path)


def test_a_file_that_was_cut_is_named(tmp_path):
    file = saved(gpt2(), tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged"):
        pretrained.gpt2(tmp_path)


@pytest.mark.parametrize("content", ["", "[]]", "7", '["n_layer"]', "\0"])
def test_a_config_that_is_none_is_named(tmp_path, content):
    (saved(gpt2(), tmp_path) / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config.json is not what transformers writes: .*; get it again"):
        pretrained.gpt2(tmp_path)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": 3}', "[]"])
def test_an_index_that_is_none_is_named(tmp_path, content):
    gpt2().save_pretrained(tmp_path, max_shard_size=1000)
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match=r"index.json is not what transformers writes: .*; get it again"):
        pretrained.gpt2(tmp_path)
