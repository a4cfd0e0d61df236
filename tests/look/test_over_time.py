"""`AttentionMaps.over_time` joins patterns computed step by step into one map."""

import pytest
import torch
from torch import nn

from tfviz import generate
from tfviz.layers import AdditiveAttention, DotAttention
from tfviz.look import AttentionMaps, capture, dequantize
from tfviz.models import GPT, LSTMN, Seq2Seq

SOURCE = torch.tensor([[4, 9, 5, 10, 3], [7, 2, 6, 0, 0]])  # 2 x 5, the second text two words shorter
TARGET = torch.tensor([[1, 8, 2], [1, 6, 4]])
WORDS = ["der", "Hund", "schläft"], ["the", "dog", "</script>", "is", "asleep"]
ATTENTION = {"additive": AdditiveAttention, "dot": DotAttention}
weighed = pytest.mark.parametrize("attention", ATTENTION.values(), ids=ATTENTION)


def random(model):
    torch.manual_seed(3)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model.eval()


def capture_call(model, *given, **how):
    with torch.no_grad(), capture(model, **how) as seen:
        model(*given)
    return seen


def translator(attention=AdditiveAttention):
    return random(Seq2Seq(11, attention=attention, dim=6, hidden=14))


@weighed
@pytest.mark.parametrize("batch", [0, 1])
def test_over_time_joins_decoder_steps(attention, batch):
    seen = capture_call(translator(attention), SOURCE, TARGET)
    maps = AttentionMaps.over_time(seen, *WORDS, batch=batch, provenance={"step": 7})
    assert (maps.shape, maps.query_tokens, maps.key_tokens, maps.sites) == ((1, 1, 3, 5), *WORDS, ["attention.pattern"])
    assert maps.provenance == {"model": "Seq2Seq", "step": 7}
    invocations = seen.over_time("attention.pattern")
    for row in range(3):
        assert torch.equal(maps[0, 0][row], invocations[row][batch, 0, 0])
    torch.testing.assert_close(maps[0, 0].sum(-1), torch.ones(3))
    assert maps[0, 0].std() > 0.01
    for row in range(3):
        for col in range(5):
            assert maps.allowed(0, 0)[row, col] == (SOURCE[batch, col] != 0)


def test_over_time_without_padding_has_no_mask():
    seen = capture_call(translator(), SOURCE[:, :3], TARGET)
    assert AttentionMaps.over_time(seen).mask is None
    assert AttentionMaps.over_time(seen).shape == (1, 1, 3, 3)


def test_batching_with_padding_does_not_change_maps():
    alone, together = capture_call(translator(), SOURCE[1:, :3], TARGET[1:]), capture_call(translator(), SOURCE, TARGET)
    maps = AttentionMaps.over_time(together, batch=1)
    torch.testing.assert_close(maps[0, 0][:, :3], AttentionMaps.over_time(alone)[0, 0])
    assert not maps[0, 0][:, 3:].any()


def test_future_keys_are_zero_and_masked():
    words = ["<s>", "a", "b", "c", "d", "e", "f"]
    seen = capture_call(random(LSTMN(11, dim=3, hidden=5)), torch.arange(14).view(2, 7) % 11)
    maps = AttentionMaps.over_time(seen, words[1:], words[:-1], batch=1)
    assert maps.shape == (1, 1, 6, 6)
    invocations = seen.over_time("recurrent.cells.0.attention.pattern")
    for row in range(6):
        assert torch.equal(maps[0, 0][row, : row + 1], invocations[row][1, 0, 0])
        assert not maps[0, 0][row, row + 1 :].any()
    assert torch.equal(maps.allowed(0, 0), torch.ones(6, 6).tril().bool())
    assert maps.query_tokens[2] == "c"
    assert maps.key_tokens[:3] == ["<s>", "a", "b"]  # what it could look at


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_generated_text_matches_one_pass(dtype):
    model, prompt = random(GPT(11, context=9, layers=2, heads=3, dim=6)), torch.tensor([3, 8, 1])
    with capture(model, dtype=dtype) as seen:
        written = list(generate.ids(model, prompt, 4))
    read = torch.tensor([[*prompt.tolist(), *written[:-1]]])
    words = [str(token) for token in read[0].tolist()]
    maps, whole = AttentionMaps.over_time(seen, words), AttentionMaps.from_capture(capture_call(model, read), words)
    assert maps.shape == whole.shape == (2, 3, 6, 6)
    torch.testing.assert_close(maps.weights, whole.weights, rtol=0, atol=1e-5 if dtype is torch.float32 else 0.005)
    assert maps.layers[0].dtype == dtype
    for layer, head in ((0, 0), (1, 2)):
        assert torch.equal(maps.allowed(layer, head), whole.allowed(layer, head))
    assert (maps.query_tokens, maps.key_tokens) == (whole.query_tokens, whole.key_tokens)
    last = AttentionMaps.from_capture(seen, key_tokens=whole.key_tokens, invocations="last")
    assert torch.equal(last[1, 2], dequantize(seen.over_time("blocks.1.attention.pattern")[-1][0, 2]))


def test_over_time_of_one_invocation_matches_plain_maps():
    seen = capture_call(random(GPT(11, layers=2, heads=3, dim=6)), SOURCE)
    plain, joined = AttentionMaps.from_capture(seen, batch=1), AttentionMaps.over_time(seen, batch=1)
    assert torch.equal(joined.weights, plain.weights)
    assert torch.equal(joined.mask, plain.mask)
    assert joined.sites == plain.sites


class SoftmaxAttention(nn.Module):
    """Values weighed by the softmax of whatever it is given."""

    def forward(self, scores):
        return scores.softmax(-1) @ torch.randn(*scores.shape[:2], scores.shape[-1], 6)


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3, 1, 4), (2, 3, 1, 3)],
        [(2, 3, 1, 4), (1, 3, 1, 4)],
        [(2, 3, 1, 4), (2, 5, 1, 4)],
        [(2, 3, 1, 4), (2, 3, 1, 5), (2, 3, 1, 2)],
    ],
)
def test_over_time_rejects_incompatible_invocations(shapes):
    model = SoftmaxAttention()
    with capture(model) as seen:
        for shape in shapes:
            model(torch.randn(*shape))
    with pytest.raises(
        ValueError, match=r"pattern was computed \d times, and its last invocation attends to keys that no earlier one"
    ):
        AttentionMaps.over_time(seen)


def test_over_time_rejects_invalid_arguments():
    seen = capture_call(translator(), SOURCE, TARGET)
    with pytest.raises(ValueError, match="query_tokens has 5 labels, the maps have 3 queries"):
        AttentionMaps.over_time(seen, WORDS[1], WORDS[0])
    with pytest.raises(ValueError, match="batch is 2; the capture holds a batch of 2"):
        AttentionMaps.over_time(seen, batch=2)
    with pytest.raises(LookupError, match=r"no pattern of 'decoder\*' was captured, only: attention\.pattern"):
        AttentionMaps.over_time(seen, sites="decoder*")
    with pytest.raises(KeyError, match="no site matches 'other'"):
        seen.invocations("other")
