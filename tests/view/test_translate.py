"""`view.translate` without a browser: programs, document and summary."""

import pytest
import torch
from small_translators import LENGTH, READ, WRITE, model, source_ids, tokenizers, translated

from tfviz import generate, layers, look, models, view
from tfviz.models.transformer import EncoderOutput
from tfviz.portable.encoder_decoder import export_encoder_decoder
from tfviz.portable.program import serialize_programs
from tfviz.text import train_whole_words
from tfviz.view.figures.formatting import format_number
from tfviz.view.figures.generation import translation_steps


@pytest.mark.parametrize("parts", [{}, {"positions": layers.positions.Rotary}, {"positions": layers.positions.ALiBi}])
def test_programs_match_model(parts):
    made = model(**parts)
    programs = export_encoder_decoder(made, "float32")
    draw = torch.Generator().manual_seed(5)
    for read, many, written in ((1, 1, 1), (7, 3, 4), (4, 8, 11)):
        source = torch.randint(1, 16, (1, read), generator=draw)
        target = torch.randint(1, 14, (many, written), generator=draw)
        memory = programs["encode"](source)
        expected = made.encode(source)
        torch.testing.assert_close(memory["states"], expected.states, rtol=1e-5, atol=1e-5)
        assert torch.equal(memory["attention_mask"], expected.attention_mask)
        spread = EncoderOutput(*(part.expand(many, *part.shape[1:]) for part in expected))
        logits = programs["decode"](target, memory["states"], memory["attention_mask"])["logits"]
        torch.testing.assert_close(logits, made.decode(target, spread), rtol=1e-4, atol=1e-4)


def test_program_sites_match_capture():
    programs = export_encoder_decoder(model())
    assert programs["encode"].sites == [f"encoder.{i}.attention.pattern" for i in range(2)]
    kinds = [(layer, kind) for layer in range(2) for kind in ("attention", "cross")]
    assert programs["decode"].sites == [f"decoder.{layer}.{kind}.pattern" for layer, kind in kinds]


def test_shared_embedding_is_stored_once():
    torch.manual_seed(0)
    made = models.Transformer(50, context=12, layers=1, heads=2, dim=8)
    programs = export_encoder_decoder(made, "float32")
    _, data = serialize_programs(programs)
    table = 50 * 8 * 4
    assert len(data) < sum(program.nbytes for program in programs.values()) - table + 100


def test_document_contains_tokens_limits_and_state():
    _, shown = translated()
    source, target = tokenizers()
    told = shown.document
    assert told["kind"] == "translate"
    assert (told["bos_id"], told["eos_id"], told["suppressed_ids"]) == (
        target["[BOS]"],
        target["[EOS]"],
        [0, target["[BOS]"]],
    )
    assert (told["source_eos_ids"], told["max_new_tokens"], told["max_source"]) == ([source["[EOS]"]], LENGTH, 24)
    assert len(told["tokenizers"]) == 2
    assert [told["state"][name] for name in ("num_beams", "length_penalty", "steps")] == [4, 0.6, LENGTH]


def test_max_new_tokens_is_limited_by_model_context():
    made = model(context=10)
    assert view.translate(made, tokenizers(), "one", dtype="float32").document["max_new_tokens"] == 10


def test_summary_names_most_certain_word_of_greedy_translation():
    made, shown = translated()
    _, target = tokenizers()
    how = {"bos": target["[BOS]"], "eos": target["[EOS]"], "max_new_tokens": LENGTH}
    text = generate.beam.greedy(made, source_ids("one two three"), **how)
    assert "Which words does it translate from? 'one two three'" in shown.summary
    with torch.no_grad(), look.capture(made, "*.cross.pattern") as seen:
        logits = made(source_ids("one two three"), text.sequences[0, :, :-1])[0]
    shares = logits.softmax(-1).index_fill(-1, torch.tensor([0, target["[BOS]"]]), 0)
    best = int(shares.amax(-1)[: text.lengths[0, 0]].argmax())
    most = torch.stack([pattern[0].mean(0) for pattern in seen.values()]).mean(0)[best].argmax()
    read = tokenizers()[0].tokens(source_ids("one two three")[0])[most]
    assert (
        f"{target.tokens(text.sequences[0, 0])[best + 1]!r} {format_number(float(shares[best].max()))} ({read!r})"
        in shown.summary
    )


def test_html_is_deterministic():
    made = model()
    first, second = (view.translate(made, tokenizers(), "one", max_new_tokens=3).html() for _ in range(2))
    assert first == second


def test_translate_keeps_training_mode():
    made = model().train()
    view.translate(made, tokenizers(), "one", max_new_tokens=2)
    assert all(part.training for part in made.modules())


def test_shared_vocabulary_is_stored_once():
    both = train_whole_words([f"{READ} {WRITE}"])
    torch.manual_seed(0)
    made = models.Transformer(len(both), context=12, layers=1, heads=2, dim=8)
    assert len(view.translate(made, both, "one").document["tokenizers"]) == 1
    assert len(view.translate(made, [both, both], "one").document["tokenizers"]) == 1


@pytest.mark.parametrize("attention", [layers.AdditiveAttention, None])
def test_recurrent_models_raise_with_hint(attention):
    both = train_whole_words([f"{READ} {WRITE}"])
    made = models.Seq2Seq(len(both), attention=attention, dim=8, hidden=12)
    with pytest.raises(ValueError, match=r"Seq2Seq reads .* in a loop.* use a model such as models\.Transformer"):
        view.translate(made, both, "one")
    assert made.training


def test_probabilities_of_words_have_equal_decimals():
    """Beside 0.84 there once stood 0.4."""
    weights = torch.full((3, 2), 0.5)
    figure = translation_steps(["a", "b", "c"], [0.84, 0.4, 1.0], ["x", "y"], weights, "t").figure()
    assert [text.get_text() for text in figure.axes[1].texts] == ["0.84", "0.40", "1.00"]
