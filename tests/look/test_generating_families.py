"""Texts that Hugging Face's decoders write for a padded batch: joined over time, the maps of one pass."""

import pytest
import torch

from tfviz.look import AttentionMaps, capture

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()

IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [1, 1, 1, 7, 8, 9, 12]])
OPEN = (IDS != 1).long()
WRITTEN = 6
SIZES = {
    "vocab_size": 40, "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip
SHARED = {"num_key_value_heads": 2}
KINDS = {
    "llama": SHARED,  # heads that share keys
    "mistral": {**SHARED, "sliding_window": 4},  # shorter than the prompt
    "mistral, wide": {**SHARED, "sliding_window": 9},  # longer than the prompt, shorter than the text
    "gemma2": {**SHARED, "head_dim": 8, "sliding_window": 5},  # soft caps; every second layer slides
    "gpt_oss": {**SHARED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2},  # a sink
    "mpt": {"d_model": 24, "n_heads": 4, "n_layers": 2},  # reads all anew for each word
    "diffllama": SHARED,  # weights that meet two values
}
FUSED = {"llama", "mistral", "mistral, wide", "mpt", "diffllama"}


def model(kind, how):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind.partition(",")[0], **{**SIZES, **KINDS[kind]})
    made = transformers.AutoModelForCausalLM.from_config(config).eval()
    made.set_attn_implementation(how)
    made.generation_config.eos_token_id = None
    return made


@torch.no_grad()
def one_pass(kind, ids, open_):
    return torch.stack(model(kind, "eager")(input_ids=ids, attention_mask=open_, output_attentions=True).attentions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["eager", "sdpa"])
def test_one_pass(kind, how):
    if how == "sdpa" and kind not in FUSED:
        pytest.skip("it has no fused form")
    with torch.no_grad(), capture(made := model(kind, how)) as seen:
        made(input_ids=IDS, attention_mask=OPEN)
    maps, expected = torch.stack([seen[site] for site in seen]), one_pass(kind, IDS, OPEN)
    torch.testing.assert_close(maps[:, 0], expected[:, 0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(maps[:, 1, :, 3:], expected[:, 1, :, 3:], rtol=1e-4, atol=1e-6)
    assert not maps[:, 1, :, :3].any()  # what is padding sees nothing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["eager", "sdpa"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_text_that_is_written(kind, how, cache):
    if how == "sdpa" and kind not in FUSED:
        pytest.skip("it has no fused form")
    made = model(kind, how)
    fixed = {"cache_implementation": "static"} if cache == "static" else {}
    with torch.no_grad(), capture(made) as seen:
        ids = made.generate(input_ids=IDS, attention_mask=OPEN, max_new_tokens=WRITTEN, do_sample=False, **fixed)
    if kind == "diffllama":  # two calls a layer, whose maps are the same
        with pytest.raises(ValueError, match="more than once on the same"):
            AttentionMaps.over_time(seen, batch=1)
        return
    maps = AttentionMaps.over_time(seen, batch=1)
    read = ids[:, :-1]
    expected = one_pass(kind, read, torch.cat([OPEN, torch.ones(2, WRITTEN - 1, dtype=torch.long)], 1))[:, 1]
    assert maps.shape == tuple(expected.shape)
    torch.testing.assert_close(maps.weights[:, :, 3:], expected[:, :, 3:], rtol=1e-4, atol=1e-6)
