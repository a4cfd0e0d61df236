"""Names of modules by which attention from one text to another is told from self-attention."""

import pytest

from tfviz.look.map_groups import CROSS_ATTENTION_NAME


@pytest.mark.parametrize(
    "name",
    ["crossattention", "cross_attn", "multihead_cross", "encoder_attn", "EncDecAttention", "enc_dec_attn", "src_attn",
     "encoder_decoder_attention"],
)  # fmt: skip
def test_cross_attention_is_recognized_by_name(name):
    assert CROSS_ATTENTION_NAME.search(name)


@pytest.mark.parametrize("name", ["self_attn", "encoder", "decoder", "encoder_decoder", "attention", "source"])
def test_other_modules_are_not_cross_attention(name):
    assert not CROSS_ATTENTION_NAME.search(name)
