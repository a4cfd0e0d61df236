"""Generation with Hugging Face models matches their own `generate` token for token."""

import pytest
import tokenizers
import torch
import transformers
from torch import nn

from tfviz import generate
from tfviz.generate import GREEDY, beam
from tfviz.models import GPT

PROMPT = torch.tensor([3, 1, 2])
SOURCE = torch.tensor([[4, 9, 7, 22, 5], [8, 3, 11, 13, 6]])
SIZES = {"vocab_size": 31, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0, "tie_word_embeddings": False}
HIDDEN = {"hidden_size": 12, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 3}


def random(model):
    """Weights so large that a text does not repeat itself."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.9)
        else:
            last = name.endswith(("ln_f.weight", "final_layer_norm.weight"))  # against an embedding that is tied
            nn.init.constant_(parameter, -last or not name.endswith("bias"))
    return model.eval()


def causal(name, **parts):
    torch.manual_seed(4)
    make = {
        "gpt2": lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_positions=40, n_embd=12, n_layer=2, n_head=3, **SIZES | parts)
        ),
        "llama": lambda: transformers.LlamaForCausalLM(
            transformers.LlamaConfig(num_key_value_heads=1, max_position_embeddings=40, **SIZES, **HIDDEN)
        ),
        "bloom": lambda: transformers.BloomForCausalLM(
            transformers.BloomConfig(hidden_size=12, n_layer=2, n_head=3, **SIZES)
        ),
        "mistral": lambda: transformers.MistralForCausalLM(
            transformers.MistralConfig(
                num_key_value_heads=3, sliding_window=4, max_position_embeddings=40, **SIZES, **HIDDEN
            )
        ),
    }
    return random(make[name]())


def hf_generate(model):
    """What the model's own `generate` writes after the prompt."""
    mask = torch.ones(1, 3, dtype=torch.long)
    return model.generate(PROMPT[None], attention_mask=mask, do_sample=False, max_new_tokens=20)[0, 3:].tolist()


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom", "mistral"])
def test_greedy_matches_hf_generate(name, cache):
    model = causal(name).train()
    found = list(generate.ids(model, PROMPT, 20, GREEDY, cache=cache))
    assert model.training
    model.eval()
    assert found == hf_generate(model)
    assert len(set(found)) > 3 or name == "bloom"  # whose random weights repeat a token


def test_generation_stops_at_configured_eos_tokens():
    model = causal("gpt2")
    whole = list(generate.ids(model, PROMPT, 20, GREEDY))
    _, _, end, later, *_ = dict.fromkeys(whole)
    for ends in (end, [later, end]):
        model.generation_config.eos_token_id = ends
        found = list(generate.ids(model, PROMPT, 20, GREEDY))
        assert found == whole[: whole.index(end) + 1]
        assert hf_generate(model) == found


def test_context_length_comes_from_the_config():
    model = causal("gpt2")
    with pytest.raises(ValueError, match="the prompt has 41 tokens, the model's context is 40"):
        generate.ids(model, torch.arange(41) % 31, 3)
    assert len(list(generate.ids(model, torch.arange(38) % 31, 9, seed=1))) == 9
    cached = list(generate.ids(model, torch.arange(38) % 31, 9, seed=1))
    assert cached == list(generate.ids(model, torch.arange(38) % 31, 9, seed=1, cache=False))


@pytest.mark.parametrize("sampler", [GREEDY, generate.Sampler(top_k=9)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom", "mistral"])
def test_batch_matches_single_prompts(name, sampler):
    model, prompts = causal(name), [PROMPT, torch.tensor([7]), torch.tensor([4, 9, 22, 8, 11])]
    expected = [list(generate.ids(model, prompt, 12, sampler, seed=5 + row)) for row, prompt in enumerate(prompts)]
    assert generate.batch(model, prompts, 12, sampler, seed=5) == expected
    end = expected[1][3]
    model.generation_config.eos_token_id = end
    ended = [text[: text.index(end) + 1] if end in text else text for text in expected]
    assert generate.batch(model, prompts, 12, sampler, seed=5) == ended
    assert generate.batch(model, prompts, 0) == [[], [], []]


def tokenizer():
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    special = ["<unk>", "<s>", "</s>"]
    trainer = tokenizers.trainers.BpeTrainer(special_tokens=special, vocab_size=31)
    backend.train_from_iterator(["the cat sat on the mat"], trainer)
    backend.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def test_stream_with_hf_tokenizer_matches_generate():
    """With the special tokens of the prompt, and without those in what is shown."""
    words = tokenizer()
    model = causal("gpt2", vocab_size=len(words))
    prompt = words("the cat", return_tensors="pt")
    assert prompt["input_ids"][0, 0] == 1
    expected = model.generate(**prompt, do_sample=False, max_new_tokens=20)[0]
    pieces = list(generate.stream(model, words, "the cat", 20, GREEDY))
    assert "".join(pieces) == words.decode(expected[prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert generate.text(model, words, "the cat", 20, GREEDY) == "the cat" + "".join(pieces)
    assert len(pieces) > 5


def t5():
    torch.manual_seed(4)
    config = transformers.T5Config(
        vocab_size=31,
        d_model=12,
        d_kv=4,
        num_heads=3,
        d_ff=16,
        num_layers=2,
        decoder_start_token_id=0,
        tie_word_embeddings=False,
    )
    return random(transformers.T5ForConditionalGeneration(config))


SIDES = {
    f"{part}_{name}": value
    for part in ("encoder", "decoder")
    for name, value in {"layers": 2, "attention_heads": 3, "ffn_dim": 16}.items()
}
SIDES |= {"vocab_size": 31, "d_model": 12, "max_position_embeddings": 40, "tie_word_embeddings": False}


def bart():
    torch.manual_seed(4)
    config = transformers.BartConfig(forced_eos_token_id=None, eos_token_id=2, **SIDES)
    return random(transformers.BartForConditionalGeneration(config))


def marian():
    """Ids as in OPUS-MT: 0 is the end, and the last id is both padding and the beginning."""
    torch.manual_seed(4)
    ends = {"eos_token_id": 0, "forced_eos_token_id": None, "pad_token_id": 30, "decoder_start_token_id": 30}
    model = random(transformers.MarianMTModel(transformers.MarianConfig(**ends, **SIDES)))
    model.final_logits_bias[0, 0] = 3.0  # so that a text ends
    return model


ENCODER_DECODERS = [(t5, 0, 1, 0), (bart, 2, 2, 1), (marian, 30, 0, 30)]


@pytest.mark.parametrize(("make", "bos", "eos", "pad"), ENCODER_DECODERS)
@pytest.mark.parametrize("num_beams", [1, 3])
def test_encoder_decoder_generates_padding_only_after_an_end(make, bos, eos, pad, num_beams):
    model = make()
    (model.lm_head.weight.data if make is t5 else model.final_logits_bias)[..., pad] += 50.0
    found = beam.search(model, SOURCE, bos=bos, eos=eos, num_beams=num_beams, max_new_tokens=9)
    generated = found.sequences[:, :, 1:]
    after_end = torch.arange(generated.shape[-1]) >= found.lengths[..., None]
    assert torch.equal(generated == pad, after_end)


@pytest.mark.parametrize(("make", "bos", "eos", "pad"), ENCODER_DECODERS)
def test_source_of_padding_is_refused_and_of_any_other_token_is_not(make, bos, eos, pad):
    other = 19 if pad == 0 else 0
    beam.greedy(make(), torch.full((2, 3), other), bos=bos, eos=eos, max_new_tokens=2)
    with pytest.raises(ValueError, match="a row of source holds nothing but padding"):
        beam.greedy(make(), torch.full((2, 3), pad), bos=bos, eos=eos, max_new_tokens=2)


def test_model_without_padding_uses_zero():
    model = bart()
    model.config.pad_token_id = None
    model.final_logits_bias[0, 0] = 50.0
    assert 0 not in beam.greedy(model, PROMPT[None], bos=2, eos=2, max_new_tokens=4).sequences


def test_model_whose_end_is_its_padding_ends():
    model = bart()
    model.config.pad_token_id = 2
    model.final_logits_bias[0, 2] = 50.0
    assert beam.greedy(model, torch.tensor([[3, 4]]), bos=0, eos=2, max_new_tokens=4).sequences.tolist() == [[[0, 2]]]


@pytest.mark.parametrize(("make", "bos", "eos", "pad"), ENCODER_DECODERS)
def test_encoder_decoder_greedy_matches_hf_generate(make, bos, eos, pad):
    model = make()
    source = torch.tensor([[4, 9, 7, 22, 5], [8, 3, 11, pad, pad], [29, 3, 6, 7, pad]])
    found = beam.greedy(model, source, bos=bos, eos=eos, max_new_tokens=9)
    banned = sorted({pad, bos} - {eos})
    how = {"do_sample": False, "num_beams": 1, "max_new_tokens": 9, "suppress_tokens": banned}
    expected = model.generate(source, attention_mask=(source != pad).long(), **how)
    for row, ids in enumerate(expected[:, 1:].tolist()):
        ids = ids[: ids.index(eos)] if eos in ids else ids
        assert found.ids(row).tolist() == ids
    assert len({tuple(found.ids(row).tolist()) for row in range(3)}) > 1


def test_beam_sums_match_one_full_decoder_pass():
    """The probability of each text, computed by one pass of the decoder over all of it."""
    model, source = t5(), torch.tensor([[4, 9, 7, 22, 5], [8, 3, 11, 0, 0]])
    found = beam.search(model, source, bos=0, eos=1, num_beams=3, length_penalty=0.0, max_new_tokens=6)
    for row in range(2):
        for rank in range(3):
            length = int(found.lengths[row, rank])
            text = found.sequences[row, rank, : length + 1]
            one = source[row : row + 1]
            logits = model(one, (one != 0).long(), decoder_input_ids=text[None, :-1]).logits
            logs = logits[0].log_softmax(-1).gather(-1, text[1:, None]).sum()
            assert found.sums[row, rank].item() == pytest.approx(logs.item(), abs=1e-4)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: generate.ids(t5(), PROMPT, 3), "T5ForConditionalGeneration is an encoder-decoder"),
        (
            lambda: beam.search(causal("gpt2"), PROMPT[None], bos=1, eos=2),
            "GPT2LMHeadModel is a decoder without a source",
        ),
        (lambda: generate.ids(causal("gpt2").transformer, PROMPT, 3), "GPT2Model has no head that computes logits"),
        (
            lambda: list(generate.ids(causal("gpt2"), torch.tensor([31]), 3)),
            "id 31 is not one of the model's 31 tokens",
        ),
        (lambda: beam.search(t5(), torch.tensor([[31]]), bos=0, eos=1), "id 31 is not one of the model's 31 tokens"),
        (lambda: generate.batch(causal("gpt2"), [], 3), "prompts are empty"),
        (lambda: generate.batch(causal("gpt2"), [PROMPT, PROMPT[:0]], 3), "or one of them is"),
        (
            lambda: generate.batch(causal("gpt2"), [PROMPT], 38),
            "3 tokens and max_new_tokens is 38, the model's context is 40",
        ),
        (lambda: generate.batch(t5(), [PROMPT], 3), "T5ForConditionalGeneration is an encoder-decoder"),
        (lambda: generate.batch(GPT(11, heads=3, dim=6), [PROMPT], 3), "model is a GPT; give PretrainedModel"),
        (lambda: generate.ids(nn.Linear(2, 2), PROMPT, 3), "model is a Linear; give LanguageModel"),
    ],
)
def test_invalid_calls_raise(use, says):
    with pytest.raises((ValueError, TypeError), match=says):
        use()


def test_tfviz_gpt_still_generates():
    model = GPT(11, context=7, layers=1, heads=3, dim=6).eval()
    assert len(list(generate.ids(model, PROMPT, 20))) == 20
