"""`AttentionMaps.over_time` matches one pass over the returned text: beams, rejected tokens, several generations."""

import warnings

import pytest
import torch
from combinations import one_at_a_time
from small_models import randomize_weights
from small_transformers import small_model, transformers

from tfviz.generate import beam
from tfviz.layers import DotAttention
from tfviz.look import AttentionMaps, capture
from tfviz.models import Seq2Seq, Transformer

IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [12, 4, 7, 20, 9, 33, 41]])
ECHO = torch.tensor([[5, 6, 7, 5, 6, 7, 5, 6, 7]])  # a text whose end has come before: prompt lookup finds candidates


def llama(seed=1, how="sdpa", **more):
    return endless(
        small_model(
            "LlamaForCausalLM", vocab_size=60, seed=seed, std=0.25, pad_token_id=1, attn_implementation=how, **more
        )
    )


def t5(seed=1):
    return endless(small_model("T5ForConditionalGeneration", vocab_size=60, seed=seed, std=0.25, pad_token_id=0))


def endless(model):
    model.generation_config.eos_token_id = None
    return model


def generate_with_capture(model, *given, sites="*.pattern", **how):
    how = {"do_sample": False, "max_new_tokens": 8, "return_dict_in_generate": True, "output_scores": True, **how}
    with torch.no_grad(), capture(model, sites) as seen:
        out = model.generate(*given, **how)
    return seen, out


def one_pass(model, sites="*", **given):
    with torch.no_grad(), capture(model) as seen:
        model(**given)
    return AttentionMaps.from_capture(seen, sites=sites)


def assert_same_maps(maps, expected):
    assert maps.shape == expected.shape
    torch.testing.assert_close(maps.weights, expected.weights, rtol=1e-4, atol=1e-6)
    open_ = [torch.ones(()).bool() if one.mask is None else one.mask for one in (maps, expected)]
    assert torch.equal(open_[0].expand(maps.shape), open_[1].expand(maps.shape))


SEARCHES = [
    {"num_beams": 4},
    {"num_beams": 3, "num_return_sequences": 2},
    {"num_beams": 4, "do_sample": True},
    {"num_beams": 4, "use_cache": False},
    {"num_beams": 3, "cache_implementation": "static"},
]


@pytest.mark.parametrize(("search", "how", "seed"), one_at_a_time(SEARCHES, ["sdpa", "eager"], [1, 2]))
def test_over_time_follows_beams(search, how, seed):
    model = llama(seed, how)
    seen, out = generate_with_capture(model, IDS, **search)
    for number, ids in enumerate(out.sequences):
        maps = AttentionMaps.over_time(seen, list(map(str, ids[:-1])), batch=number, beam_indices=out.beam_indices)
        assert_same_maps(maps, one_pass(model, input_ids=ids[None, :-1]))
    with pytest.raises(ValueError, match=r"batch rows .* give beam_indices=out.beam_indices"):
        AttentionMaps.over_time(seen)


@pytest.mark.parametrize("cached", [True, False])
def test_over_time_separates_several_searches(cached):
    model, search = llama(1), {"max_new_tokens": 6, "do_sample": False, "use_cache": cached}
    search |= {"return_dict_in_generate": True, "output_scores": True}
    with torch.no_grad(), capture(model) as seen:
        greedy = model.generate(IDS[:1], **search)
        found = [model.generate(IDS[:1, :many], num_beams=num_beams, **search) for many, num_beams in ((5, 4), (3, 3))]
    for number, out in enumerate(found, start=1):
        maps = AttentionMaps.over_time(seen, beam_indices=out.beam_indices, text_index=number)
        assert_same_maps(maps, one_pass(model, input_ids=out.sequences[:, :-1]))
    assert_same_maps(AttentionMaps.over_time(seen, text_index=0), one_pass(model, input_ids=greedy.sequences[:, :-1]))


def test_over_time_supports_beams_that_end_early():
    model = llama(3)
    model.generation_config.eos_token_id = 20
    seen, out = generate_with_capture(
        model, IDS, num_beams=5, max_new_tokens=12, num_return_sequences=5, early_stopping=True
    )
    lengths = (out.beam_indices >= 0).sum(1)
    assert len(set(lengths.tolist())) > 1
    for number, (ids, length) in enumerate(zip(out.sequences, lengths)):
        maps = AttentionMaps.over_time(seen, batch=number, beam_indices=out.beam_indices)
        assert_same_maps(maps, one_pass(model, input_ids=ids[None, : IDS.shape[1] + length - 1]))


@pytest.mark.parametrize("asked", ["*.pattern", "*EncDecAttention.pattern"])
@pytest.mark.parametrize("ids", [IDS[:1], IDS], ids=["one text", "two texts"])
def test_over_time_follows_encoder_decoder_beams(asked, ids):
    model = t5(2)
    seen, out = generate_with_capture(model, ids, sites=asked, num_beams=4)
    for number in range(len(ids)):
        for sites in ("decoder*EncDecAttention*", "decoder*SelfAttention*")[: 1 + (asked == "*.pattern")]:
            maps = AttentionMaps.over_time(seen, batch=number, beam_indices=out.beam_indices, sites=sites)
            read = {"input_ids": ids[number, None], "decoder_input_ids": out.sequences[number, None, :-1]}
            assert_same_maps(maps, one_pass(model, sites, **read))
    with pytest.raises(ValueError, match="give beam_indices="):
        AttentionMaps.over_time(seen, sites="decoder*EncDecAttention*")


@pytest.mark.parametrize(
    ("beams", "message"),
    [
        (torch.tensor([[0, 1]]), "beam_indices does not fit|names 2 steps"),
        (torch.full((1, 8), 9), r"rows up to 9"),
        (torch.full((1, 20), 0), "names 20 steps"),
        (torch.tensor([0, 1, 2]), r"give \[text, step\]"),
        (torch.full((1, 8), -1), "names no row"),
    ],
)
def test_over_time_rejects_beams_of_another_search(beams, message):
    seen, out = generate_with_capture(llama(1), IDS[:1], num_beams=4)
    if beams.shape == (1, 2):  # the first two steps are a text of their own, unless the rows do not follow
        beams = out.beam_indices.roll(1, 1)
        message = "beam_indices does not fit"
    with pytest.raises(ValueError, match=message):
        AttentionMaps.over_time(seen, beam_indices=beams)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("how", ["lookup", "assistant", "itself"])
def test_over_time_drops_rejected_tokens(seed, how):
    model = llama(seed)
    more = {"lookup": {"prompt_lookup_num_tokens": 3}, "assistant": {"assistant_model": llama(seed + 1)}}
    seen, out = generate_with_capture(model, ECHO, **more.get(how, {"assistant_model": model}))
    read = out.sequences[:, :-1]
    assert_same_maps(AttentionMaps.over_time(seen, list(map(str, read[0]))), one_pass(model, input_ids=read))


@pytest.mark.parametrize("again", [4, 1])
def test_over_time_supports_cropped_caches(again):
    model, first, other = llama(), IDS[:1], torch.tensor([[20, 21, 22, 23]])
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad(), capture(model) as seen:
        model(first, past_key_values=cache)
        cache.crop(-4)
        for tokens in other.split(again, 1):
            model(tokens, past_key_values=cache)
    assert_same_maps(AttentionMaps.over_time(seen), one_pass(model, input_ids=torch.cat([first[:, :3], other], 1)))


def test_over_time_drops_tokens_cropped_at_the_end():
    model, cache = llama(), None
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad(), capture(model) as seen:
        model(IDS[:1, :4], past_key_values=cache)
        model(IDS[:1, 4:], past_key_values=cache)
        cache.crop(-2)
    assert_same_maps(AttentionMaps.over_time(seen), one_pass(model, input_ids=IDS[:1, :5]))


@pytest.mark.parametrize("first", [IDS[:1], IDS[:1, :2]], ids=["longer", "shorter"])
def test_over_time_separates_generations(first):
    model = llama()
    with torch.no_grad(), capture(model) as seen:
        texts = [model.generate(ids, max_new_tokens=5, do_sample=False)[:, :-1] for ids in (first, IDS[1:, :4])]
    with pytest.warns(UserWarning, match="more than one text; the last is shown, text_index=0 is the first"):
        assert_same_maps(AttentionMaps.over_time(seen), one_pass(model, input_ids=texts[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, read in enumerate(texts):
            assert_same_maps(AttentionMaps.over_time(seen, text_index=number), one_pass(model, input_ids=read))
            assert_same_maps(AttentionMaps.over_time(seen, text_index=number - 2), one_pass(model, input_ids=read))
    with pytest.raises(ValueError, match="text_index is 2; the capture holds 2 texts"):
        AttentionMaps.over_time(seen, text_index=2)


def test_over_time_separates_interleaved_texts():
    model = llama()
    caches = [transformers.DynamicCache(config=model.config) for _ in range(2)]
    with torch.no_grad(), capture(model) as seen:
        for position in range(5):
            for ids, cache in zip(IDS, caches):
                model(ids[None, position : position + 1], past_key_values=cache)
    for number, ids in enumerate(IDS):
        assert_same_maps(AttentionMaps.over_time(seen, text_index=number), one_pass(model, input_ids=ids[None, :5]))


def test_over_time_shows_the_last_of_two_texts():
    model = llama()
    with torch.no_grad(), capture(model) as seen:
        model(IDS[:1])
        model(IDS[1:, :4])
    with pytest.warns(UserWarning, match="more than one text"):
        assert_same_maps(AttentionMaps.over_time(seen), one_pass(model, input_ids=IDS[1:, :4]))


def test_over_time_rejects_reordered_rows_without_beams():
    model, cache = llama(), transformers.DynamicCache(config=llama().config)
    with torch.no_grad(), capture(model) as seen:
        model(IDS[:, :5], past_key_values=cache)
        cache.reorder_cache(torch.tensor([1, 0]))
        model(IDS[[1, 0], 5:6], past_key_values=cache)
    with pytest.raises(ValueError, match="batch rows"):
        AttentionMaps.over_time(seen)
    maps = AttentionMaps.over_time(seen, batch=0, beam_indices=torch.tensor([[1, 0]]))
    assert_same_maps(maps, one_pass(model, input_ids=IDS[1:, :6]))


def test_over_time_supports_prefilled_caches():
    model, cache = llama(), transformers.DynamicCache(config=llama().config)
    with torch.no_grad():
        model(IDS[:1, :4], past_key_values=cache)
        with capture(model) as seen:
            for position in range(4, 7):
                model(IDS[:1, position : position + 1], past_key_values=cache)
    maps, whole = AttentionMaps.over_time(seen, key_tokens=list("abcdefg")), one_pass(model, input_ids=IDS[:1])
    assert maps.shape == (2, 4, 3, 7)
    torch.testing.assert_close(maps.weights, whole.weights[:, :, 4:], rtol=1e-4, atol=1e-6)


def test_over_time_rejects_modified_caches():
    model, cache = llama(), transformers.DynamicCache(config=llama().config)
    with torch.no_grad(), capture(model) as seen:
        model(IDS[:1, :4], past_key_values=cache)
        for layer in cache.layers:
            layer.keys = layer.keys * 1.5
        model(IDS[:1, 4:5], past_key_values=cache)
    with pytest.raises(
        ValueError, match=r"4 keys of the text were computed by no invocation|that no earlier one computed"
    ):
        AttentionMaps.over_time(seen)


def test_over_time_supports_sliding_windows():
    model = endless(small_model("MistralForCausalLM", vocab_size=60, seed=4, std=0.25, sliding_window=5))
    for given, more in ((IDS[:1], {}), (ECHO, {"prompt_lookup_num_tokens": 2})):
        seen, out = generate_with_capture(model, given, **more)
        assert_same_maps(AttentionMaps.over_time(seen), one_pass(model, input_ids=out.sequences[:, :-1]))


# --- our own


def test_over_time_separates_seq2seq_calls():
    torch.manual_seed(3)
    model = Seq2Seq(11, attention=DotAttention, dim=6, hidden=14).eval()
    source, target = torch.tensor([[4, 9, 5, 10, 3]]), torch.tensor([[1, 8, 2]])
    with torch.no_grad(), capture(model) as seen:
        model(source, target)
        model(source, target[:, [0, 2, 1]])
    with torch.no_grad(), capture(model) as alone:
        model(source, target)
    assert_same_maps(AttentionMaps.over_time(seen, text_index=0), AttentionMaps.over_time(alone))
    with pytest.warns(UserWarning, match="more than one text"):
        assert AttentionMaps.over_time(seen).shape == (1, 1, 3, 5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_over_time_follows_tfviz_beam_search(num_beams):
    torch.manual_seed(5)
    model = randomize_weights(Transformer(13, 17, context=12, layers=2, heads=3, dim=12), seed=None, std=0.5)
    source = torch.tensor([[4, 9, 5, 10, 3], [7, 2, 6, 8, 11]])
    with capture(model, "decoder*.pattern") as seen:
        beams = list(beam.steps(model, source, bos=1, eos=2, num_beams=num_beams, max_new_tokens=6))
    for row in range(2):
        ids = beams[-1].sequences[row, 0]
        length = int(beams[-1].lengths[row, 0])
        read = ids[None, :length]
        rows = beam.beam_indices(beams)
        for sites in ("decoder*cross*", "decoder*attention*"):
            maps = AttentionMaps.over_time(seen, sites=sites, batch=row, beam_indices=rows)
            with torch.no_grad(), capture(model) as one:
                model(source[row, None], read)
            assert_same_maps(maps, AttentionMaps.from_capture(one, sites=sites))
