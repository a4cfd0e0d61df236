"""`view.write` without a browser: document, programs, summary and examples."""

import pytest
import torch
from calls import Calls
from torch.nn import functional
from writing_studios import CONTEXT, TOKENIZER, format_percent, gpt, write_studio

from tfviz import generate, models, portable, view
from tfviz.look import AttentionMaps, capture
from tfviz.text import SubwordTokenizer, train_bpe
from tfviz.view.figures.palette import tick_labels
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.figures.text_studio import Prediction, StudioPicture
from tfviz.view.page.heads import HEADS_STATE

COMES = {
    "prompt",
    "seed",
    "temperature",
    "top_k",
    "top_p",
    "tree",
    "node",
    "ablated_heads",
    "head_map_open",
    "head_importance",
}


def test_summary_contains_probability_of_likeliest_token():
    model, made = write_studio()
    with torch.no_grad():
        shares = model(TOKENIZER.encode("abc")[None])[0, -1].softmax(-1)
    top = shares.argmax().item()
    assert "What comes next? the next token after 'abc'" in made.summary
    assert f"{float(f'{shares[top]:.2g}'):g}" in made.summary
    assert made._png("light")[:4] == b"\x89PNG"


def drawn(made):
    """Colours of the maps of a static picture, by their places, and all that is written there."""
    figure = made.figure()
    maps = [axes.images[0] for axes in figure.axes if axes.images]
    return maps, [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_still_picture_has_the_text_all_heads_and_the_bars():
    model, made = write_studio()
    with torch.no_grad(), capture(model, "*.pattern") as seen:
        logits = model(TOKENIZER.encode("abc")[None])[0, -1]
    patterns = torch.stack([pattern[0] for pattern in seen.values()])
    (opened, *maps), texts = drawn(made)  # the head that shades the text stands below it, with its words
    assert len(maps) == patterns[..., 0, 0].numel()
    assert [label.get_text() for label in opened.axes.get_yticklabels()] == ["a", "b", "c"]
    for image, pattern in zip([opened, *maps], [patterns[0, 0], *patterns.flatten(0, 1)]):
        torch.testing.assert_close(torch.as_tensor(image.get_array().data).float(), pattern, rtol=0, atol=1e-5)
    assert {"a", "b", "c", "head 0", "layer 1", "shaded: what layer 0, head 0 looks at, from “c”"} <= set(texts)
    shares = logits.softmax(-1)
    assert format_percent(shares.max()) in texts
    assert TOKENIZER.tokens(shares.argmax()[None])[0] in texts


def opened_labels(tokens):
    """The labels of the rows of the selected head below the text; none if it is not drawn."""
    weights = torch.full((1, 4, len(tokens), len(tokens)), 1 / len(tokens))
    prediction = Prediction("?", [*"abcdefghijklmnop"], {"p": torch.ones(16)})
    picture = StudioPicture("t", AttentionMaps(weights, tokens), 0, 1, 0, tokens, prediction)
    axes = StaticFigure(picture.draw, "t").figure().axes
    return [label.get_text() for one in axes if one.images for label in one.get_yticklabels()]


def test_selected_head_of_a_long_text_is_labelled_with_its_words():
    assert opened_labels([*"to be or not to be"]) == tick_labels(
        [*"to be or not to be"]
    )  # of a short one with all tokens
    assert opened_labels([*"to be or not to be it is so"]) == ["to", "be", "or", "not", "to", "be", "it", "is", "so"]
    assert opened_labels(["i", *[" l", "i"] * 12]) == ["i", *["li"] * 12]


@pytest.mark.parametrize("count", [10, 25])
def test_tokens_without_spaces_are_not_joined_to_one_word(count):
    tokens = [*("il" * 13)[:count]]
    assert opened_labels(tokens) == tokens


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), [(0.5, 4, 0.9), (0.0, None, None), (2.0, None, 0.6)])
def test_the_still_picture_shows_the_controls_and_what_they_cut(temperature, top_k, top_p):
    model, _ = write_studio()
    how = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    made = view.write(model, TOKENIZER, "abc", dtype="float32", **how)
    with torch.no_grad(), capture(model, "*.pattern") as seen:
        logits = model(TOKENIZER.encode("abc")[None])[0, -1]
    figure, (_, texts) = made.figure(), drawn(made)
    names = [f"temperature {temperature:g}", top_k and f"top-k {top_k}", top_p and f"top-p {top_p}"]
    assert ", ".join(filter(None, names)) in texts
    bars = [bar[0].get_width() for bar in figure.axes[0].containers]
    kinds = 3 if top_k or top_p else 2  # the track, the bar before the cut, the bar
    drawn_from, warm = (
        sampler.probabilities(logits).sort(descending=True).values[: len(bars) // kinds].tolist()
        for sampler in (generate.Sampler(**how), generate.Sampler(temperature))
    )
    assert set(map(format_percent, drawn_from)) <= set(texts)
    lengths = [width / bars[0] for width in bars]
    assert lengths[kinds - 1 :: kinds] == pytest.approx(drawn_from, abs=1e-5)
    assert lengths[1::kinds] == pytest.approx(warm, abs=1e-5)
    looks = next(iter(seen.values()))[0, 0, -1]
    most = "itself" if looks.argmax() == 2 else f"“{'abc'[looks.argmax()]}”"
    found = f"Layer 0, head 0 looks most at {most}, from “c”: {format_percent(looks.max())} of its attention."
    assert found in [text.get_text() for text in figure.texts]


def test_the_still_picture_of_a_long_text_has_the_bars_alone():
    model = models.GPT(len(TOKENIZER), context=200, layers=1, heads=1, dim=4)
    maps, _ = drawn(view.write(model, TOKENIZER, "ab" * 80))
    assert maps == []


def test_document_contains_state_and_attention_sites():
    model, made = write_studio()
    assert set(made.document["state"]) == COMES | set(HEADS_STATE)
    assert made.document["context"] == CONTEXT
    with torch.no_grad(), capture(model, "*.pattern") as seen:
        model(TOKENIZER.encode("abc")[None])
    for program in made.document["programs"].values():
        assert [node["site"] for node in program["nodes"] if "site" in node] == list(seen)
    state = view.write(model, TOKENIZER, "ab", temperature=0, top_k=5, top_p=0.5, seed=9).document["state"]
    assert [state[name] for name in ("temperature", "top_k", "top_p", "seed")] == [0, 5, 0.5, 9]


def test_write_is_deterministic_and_leaves_model_unchanged():
    model = gpt().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one, two = (view.write(model, TOKENIZER, "abc") for _ in range(2))
    assert model.training
    assert model.blocks[0].training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert one.html() == two.html()


def test_weights_are_stored_once_in_requested_precision():
    model = gpt()
    count = sum(parameter.numel() for parameter in model.parameters())
    sizes = {kind: len(view.write(model, TOKENIZER, "abc", dtype=kind).data) for kind in ("float32", "int8")}
    assert 3.8 * count < sizes["float32"] < 4.2 * count  # tensors that are alike are kept once
    assert sizes["int8"] < sizes["float32"] / 2


def test_model_without_cache_has_only_read_program():
    made = view.write(Calls(gpt()), TOKENIZER, "abc")
    assert list(made.document["programs"]) == ["read"]
    assert made.document["context"] == 1024


def test_transformers_tokenizer_is_accepted_and_unchanged():
    transformers = pytest.importorskip("transformers")
    words = train_bpe(["the cat sat on the mat and the dog sat on the cat"], 300).backend_tokenizer
    words.encode_special_tokens = False
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
    padded = tokenizer("the cat", padding="max_length", max_length=9).input_ids
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 24}
    torch.manual_seed(3)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer), **sizes)).eval()
    ids = tokenizer("the cat", return_tensors="pt").input_ids
    with torch.no_grad():
        expected = model(ids).logits[0, -1].argmax()[None]
    made = view.write(model, tokenizer, "the cat")
    assert made.document["context"] == 24
    assert SubwordTokenizer(words).tokens(expected)[0] in made.summary
    live = view.write(model, tokenizer, "the cat", kernel=True)
    assert live._ids() == ids[0].tolist()
    assert tokenizer("the cat", padding="max_length", max_length=9).input_ids == padded
    assert not tokenizer.backend_tokenizer.encode_special_tokens
    assert view.interact(lambda x: x.float(), x=view.controls.text("the cat", tokenizer)).summary


def test_note_states_loss_of_int8_weights():
    model, tokenizer = gpt(), TOKENIZER
    ids = tokenizer.encode("face.bad")
    made = view.write(model, tokenizer, "face.bad", dtype="int8", max_bytes=None)
    program = portable.export(lambda ids: model(ids), ids[None], lengths={"ids": {1: "positions"}}, dtype="int8")
    with torch.no_grad():
        losses = [
            functional.cross_entropy(logits[0, :-1], ids[1:]).item()
            for logits in (program(ids[None])["output"], model(ids[None]))
        ]
    assert made.document["note"] == (
        f"With weights of 8 bits the prompt costs {losses[0]:.3f} nats a token; with the model's own, {losses[1]:.3f}."
    )
    assert "note" not in view.write(model, tokenizer, "face.bad").document


def test_tries_set_existing_state_only():
    made = view.write(gpt(), TOKENIZER, "face", examples={"Backwards": {"prompt": "ecaf"}})
    assert made.document["examples"] == [["Backwards", {"prompt": "ecaf"}]]
    with pytest.raises(ValueError, match=r"examples\['x'\] sets text; it can set "):
        view.write(gpt(), TOKENIZER, "face", examples={"x": {"text": "a"}})
