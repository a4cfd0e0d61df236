"""Hugging Face checkpoints: logits match transformers; unsupported or damaged files are rejected."""

import json
import os

import pytest
import torch
from operating_systems import links, make_pipe
from safetensors.torch import load_file, save_file
from small_models import close
from torch import nn

from tfviz.models import BERT, GPT, pretrained

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

IDS = torch.tensor([[4, 9, 1, 10, 3], [7, 2, 6, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])


GPT2 = {
    "vocab_size": 11, "n_positions": 7, "n_embd": 6, "n_layer": 2, "n_head": 3, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
BERT_CONFIG = {
    "vocab_size": 11, "max_position_embeddings": 7, "hidden_size": 6, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 5, "layer_norm_eps": 0.03,  # large enough to be missed
}  # fmt: skip


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
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **settings}), encoding="utf-8")
    return folder


def rewrite(folder, edit):
    """The same checkpoint with `edit(tensors)` instead of its tensors."""
    file = folder / "model.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in edit(load_file(file)).items()}, file)
    return folder


def predictions(model):
    """All that a BERT of transformers says, as `BERTOutput` has it: no before yes."""
    with torch.no_grad():
        said = model(IDS, token_type_ids=SEGMENTS, attention_mask=(IDS != 0).long())
    return said.prediction_logits, said.seq_relationship_logits.flip(-1)


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "gelu", "relu"])
def test_gpt2_matches_transformers(tmp_path, activation):
    theirs = gpt2(activation_function=activation, resid_pdrop=0.3)
    ours = pretrained.gpt2(saved(theirs, tmp_path))
    with torch.no_grad():
        close(ours(IDS), theirs(IDS).logits)
    assert isinstance(ours, GPT)
    assert not ours.training
    assert (ours.context, ours.dropout.p, ours.blocks[1].dropout.p) == (7, 0.3, 0.3)
    assert all(parameter.requires_grad and parameter.dtype == torch.float32 for parameter in ours.parameters())


def test_bert_matches_transformers(tmp_path):
    theirs = bert()
    ours = pretrained.bert(saved(theirs, tmp_path))
    with torch.no_grad():
        given = ours(IDS, SEGMENTS)
    close(tuple(given), predictions(theirs))
    assert isinstance(ours, BERT)
    assert not ours.training
    assert (
        given.next_sentence_logits[:, 0] - given.next_sentence_logits[:, 1]
    ).abs().min() > 1e-2  # so that their order matters


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
def test_gpt2_loads_alternative_tensor_names(tmp_path, edit):
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
def test_bert_loads_alternative_tensor_names(tmp_path, edit):
    theirs = bert()
    with torch.no_grad():
        close(tuple(pretrained.bert(rewrite(saved(theirs, tmp_path), edit))(IDS, SEGMENTS)), predictions(theirs))


@pytest.mark.parametrize("type", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_float32(tmp_path, type):
    halved = lambda tensors: {name: tensor.to(type) for name, tensor in tensors.items()}  # noqa: E731
    ours = pretrained.gpt2(rewrite(saved(gpt2(), tmp_path), halved))
    assert torch.equal(ours.tokens.weight, gpt2().transformer.wte.weight.to(type).float())
    assert ours(IDS).dtype == torch.float32


def test_missing_config_settings_use_defaults(tmp_path):
    theirs = gpt2()
    config = json.loads((saved(theirs, tmp_path) / "config.json").read_text(encoding="utf-8"))
    sizes = {name: config[name] for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")}
    (tmp_path / "config.json").write_text(json.dumps(sizes), encoding="utf-8")
    with torch.no_grad():
        close(pretrained.gpt2(tmp_path)(IDS), theirs(IDS).logits)


@pytest.mark.parametrize(
    ("kind", "fresh"),
    [
        ("BertModel", ["mlm_bias", "mlm_dense.weight", "mlm_norm.bias", "next_sentence_head.weight"]),
        ("BertForMaskedLM", ["pooler.weight", "pooler.bias", "next_sentence_head.weight", "next_sentence_head.bias"]),
        ("BertForNextSentencePrediction", ["mlm_bias", "mlm_dense.weight", "mlm_norm.bias"]),
    ],
)
def test_missing_heads_are_initialized_with_warning(tmp_path, kind, fresh):
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


def test_heads_of_other_tasks_are_ignored_with_warning(tmp_path):
    theirs = bert("BertForSequenceClassification")
    with (
        pytest.warns(UserWarning, match=r"classifier.bias, classifier.weight in .* left out"),
        pytest.warns(UserWarning, match=r"train them before you use them"),
    ):
        ours = pretrained.bert(saved(theirs, tmp_path))
    with torch.no_grad():
        said = theirs.bert(IDS, token_type_ids=SEGMENTS, attention_mask=(IDS != 0).long())
        close(ours.pool(ours.encode(IDS, SEGMENTS)), said.pooler_output)


@pytest.mark.parametrize(
    ("read", "model", "alias"),
    [(pretrained.gpt2, gpt2, "lm_head.weight"), (pretrained.bert, bert, "cls.predictions.decoder.weight")],
)
def test_untied_output_weights_raise(tmp_path, read, model, alias):
    saved(model(), tmp_path)
    with pytest.raises(ValueError, match=rf"{alias} and .*(wte|word_embeddings).weight differ in .*tied"):
        read(rewrite(tmp_path, lambda tensors: {**tensors, alias: torch.ones(11, 6)}))


@pytest.mark.parametrize(
    ("read", "model", "setting"),
    [
        *((pretrained.gpt2, gpt2, setting) for setting in [
            ("model_type", "llama"), ("activation_function", "swish"), ("activation_function", None),
            ("layer_norm_epsilon", 1e-6), ("scale_attn_weights", False), ("scale_attn_by_inverse_layer_idx", True),
            ("n_inner", 25), ("resid_pdrop", 1), ("resid_pdrop", float("nan")), ("resid_pdrop", "0.1"),
            *((name, size) for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
              for size in (10**9, 10**30, 0, -1, 2.0, "2", [2], None, True)),
        ]),
        *((pretrained.bert, bert, setting) for setting in [
            ("model_type", "roberta"), ("hidden_act", "relu"), ("position_embedding_type", "relative_key"),
            ("type_vocab_size", 3), ("pad_token_id", 1), ("is_decoder", True),
        ]),
    ],
)  # fmt: skip
def test_unsupported_config_settings_raise(tmp_path, read, model, setting):
    with pytest.raises(ValueError, match=f"{setting[0]} is"):
        read(saved(model(), tmp_path, **dict([setting])))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"vocab_size": 12}, r"wte.weight is \[11, 6\] .* asks for \[12, 6\]"),
        ({"n_positions": 5}, r"wpe.weight is \[7, 6\] .* asks for \[5, 6\]"),
        ({"n_embd": 9}, r"wte.weight is \[11, 6\] .* asks for \[11, 9\]"),
        ({"n_embd": 7}, "7 is not divisible by 3"),
        ({"n_layer": 3}, r"holds no h.2.ln_1.weight \[6\]"),
        ({"n_layer": 1}, "holds h.1.attn.c_attn.bias, .* does not have"),
    ],
)
def test_config_that_mismatches_weights_raises(tmp_path, setting, words):
    with pytest.raises(ValueError, match=words):
        pretrained.gpt2(saved(gpt2(), tmp_path, **setting))


@pytest.mark.parametrize(
    ("read", "model", "name", "edit", "words"),
    [
        (pretrained.gpt2, gpt2, "h.0.attn.c_attn.weight", lambda x: x[:, :12], r"is \[6, 12\] .* \[6, 18\]"),
        (pretrained.gpt2, gpt2, "h.1.mlp.c_fc.weight", lambda x: x.T, r"is \[24, 6\] .* \[6, 24\]"),
        (pretrained.gpt2, gpt2, "h.1.mlp.c_proj.bias", lambda x: None, r"holds no h.1.mlp.c_proj.bias \[6\]"),
        (pretrained.gpt2, gpt2, "h.1.attn.lora.weight", lambda x: torch.ones(2), "holds h.1.attn.lora.weight"),
        (pretrained.gpt2, gpt2, "ln_f.bias", lambda x: x * torch.nan, "holds NaN or infinity"),
        (pretrained.gpt2, gpt2, "wpe.weight", lambda x: x.to(torch.int8), "is torch.int8"),
        (pretrained.bert, bert, "encoder.layer.1.attention.self.key.weight", lambda x: x[:5], r"is \[5, 6\]"),
        (pretrained.bert, bert, "pooler.dense.bias", lambda x: None, r"holds no pooler.dense.bias \[6\]"),
    ],
)
def test_invalid_tensors_raise_with_their_name(tmp_path, read, model, name, edit, words):
    def edited(tensors):
        full = f"{'bert' if model is bert else 'transformer'}.{name}"
        new = edit(tensors.pop(full, None))
        return tensors if new is None else {**tensors, full: new}

    with pytest.raises(ValueError, match=words):
        read(rewrite(saved(model(), tmp_path), edited))


def test_duplicate_tensor_names_raise(tmp_path):
    with pytest.raises(ValueError, match=r"ln_f.bias .* comes twice"):
        pretrained.gpt2(rewrite(saved(gpt2(), tmp_path), lambda tensors: {**tensors, "ln_f.bias": torch.zeros(6)}))


@pytest.mark.parametrize("read", [pretrained.gpt2, pretrained.bert])
def test_missing_files_raise_with_instructions(tmp_path, read):
    with pytest.raises(FileNotFoundError, match=r"no config.json in .*: hf download \S+ config.json"):
        read(tmp_path / "there")
    saved(gpt2() if read is pretrained.gpt2 else bert(), tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"no model.safetensors in .* holds config.json, .*pytorch_model.bin"):
        read(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("model.safetensors", content) for content in (b"", b"version https://git-lfs", b"\x08\0\0\0\0\0\0\0no")),
        *(("config.json", content) for content in (b"", b"[]]", b"7", b'["n_layer"]', b"\0", b"[" * 100_000)),
    ],
)  # fmt: skip
def test_damaged_files_raise_with_their_name(tmp_path, name, content):
    saved(gpt2(), tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} (is damaged|is not what transformers writes)"):
        pretrained.gpt2(tmp_path)


def test_truncated_weights_raise(tmp_path):
    file = saved(gpt2(), tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged"):
        pretrained.gpt2(tmp_path)


@links
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_symlinks_out_of_the_folder_raise(tmp_path, name):
    outside, inside = saved(gpt2(), tmp_path / "outside"), saved(gpt2(), tmp_path / "inside")
    (inside / name).unlink()
    (inside / name).symlink_to(outside / name)
    with pytest.raises(ValueError, match=f"{name} is a link out of its folder"):
        pretrained.gpt2(inside)


@links
def test_symlinks_within_folder_or_hub_cache_are_followed(tmp_path):
    blobs = tmp_path / "models--x" / "blobs"
    snapshot = saved(gpt2(), tmp_path / "models--x" / "snapshots" / "0123")
    blobs.mkdir()
    (snapshot / "model.safetensors").rename(blobs / "5e4d")
    (snapshot / "model.safetensors").symlink_to("../../blobs/5e4d")
    (snapshot / "config.json").rename(snapshot / "kept.json")
    (snapshot / "config.json").symlink_to("kept.json")
    (tmp_path / "way").symlink_to(snapshot)
    assert torch.equal(pretrained.gpt2(tmp_path / "way").tokens.weight, gpt2().transformer.wte.weight)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("make", [make_pipe, os.mkdir])
def test_pipes_and_folders_raise_file_not_found(tmp_path, name, make):
    saved(gpt2(), tmp_path)
    (tmp_path / name).unlink()
    make(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=f"no {name} in"):
        pretrained.gpt2(tmp_path)
