"""Training and evaluation of Hugging Face models, with their own losses and with ours."""

from functools import partial

import pytest
import torch
import transformers
from torch.nn import functional
from torch.utils.data import DataLoader
from trainings import TEXT, train

from tfviz.learn import evaluate, losses

SIZES = {"vocab_size": 11, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BERT = {"vocab_size": 11, "hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 8}
T5 = {"vocab_size": 11, "d_model": 6, "d_kv": 2, "num_heads": 3, "d_ff": 8, "num_layers": 1}


def gpt2(**parts):
    torch.manual_seed(1)
    none = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_positions=8, n_embd=6, n_layer=2, n_head=3, **SIZES, **none, **parts)
    )


def bert(kind):
    torch.manual_seed(1)
    options = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "num_labels": 3, "pad_token_id": 0}
    return kind(transformers.BertConfig(**BERT, **options))


def t5():
    torch.manual_seed(1)
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(**T5, dropout_rate=0.0, decoder_start_token_id=0)
    )


ROWS = [{"input_ids": TEXT[start : start + 8], "labels": TEXT[start : start + 8]} for start in range(0, 240, 8)]


def test_causal_lm_trains_equally_on_mappings_and_tuples():
    """Its labels are the inputs, which it shifts itself; ours are one position later already."""
    options = {"steps": 6, "loss": losses.default_loss}
    loader = DataLoader(ROWS, batch_size=5)
    pairs = [(batch["input_ids"][:, :-1], batch["input_ids"][:, 1:]) for batch in loader]
    found = [step.loss for step in train(gpt2(), loader, **options)]
    assert found == pytest.approx([step.loss for step in train(gpt2(), pairs, **options)], abs=1e-5)
    assert found[-1] < found[0]
    assert len(found) == len(loader)
    mean = evaluate.loss(gpt2(), loader)
    assert mean == pytest.approx(evaluate.loss(gpt2(), pairs), abs=1e-5)
    assert evaluate.accuracy(gpt2(), loader) == pytest.approx(evaluate.accuracy(gpt2(), pairs))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # Dynamo's own, in a break
@pytest.mark.parametrize("compile", [False, True])
def test_gradient_checkpointing_matches_plain_hf_training(monkeypatch, compile):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    models, found = (gpt2(), gpt2()), []
    for model, on in zip(models, (False, True)):
        options = {"gradient_checkpointing": on, "compile": on and compile}
        found.append([step.loss for step in train(model, DataLoader(ROWS, batch_size=5), 3, **options)])
    assert found[1] == pytest.approx(found[0], abs=1e-5)
    assert models[1].config.use_cache


def classification_batch():
    inputs = torch.stack([TEXT[start : start + 7] for start in range(6)])
    return {"input_ids": inputs, "attention_mask": torch.ones_like(inputs), "labels": torch.tensor([0, 1, 2, 0, 1, 1])}


def test_classifiers_train_and_evaluate_on_mappings():
    model, batch = bert(transformers.BertForSequenceClassification).eval(), classification_batch()
    tuples = (batch["input_ids"], batch["attention_mask"], batch["labels"])
    total, count = losses.model_loss(model, batch)
    expected, rows = losses.classification(model, tuples)
    torch.testing.assert_close(total, expected)
    assert int(count) == rows == 6
    assert evaluate.accuracy(model, [batch]) == evaluate.accuracy(model, [tuples])
    steps = [step.loss for step in train(model, [batch] * 30, 30, lr=0.02)]
    assert steps[-1] < steps[0] / 2
    tagged = {**batch, "labels": torch.arange(42).view(6, 7) % 3}
    tagged["labels"][:, 4:] = -100
    tagger = bert(transformers.BertForTokenClassification).eval()
    right = (tagger(batch["input_ids"]).logits.argmax(-1) == tagged["labels"]).sum().item()
    assert evaluate.accuracy(tagger, [tagged]) == pytest.approx(right / 24)
    assert int(losses.model_loss(tagger, tagged)[1]) == 24


def test_masked_lm_matches_hf_losses():
    ids = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])
    targets, segments = torch.tensor([[0, 9, 0, 0], [5, 0, 0, 7]]), torch.tensor([[0, 0, 1, 0], [0, 1, 1, 1]])
    model = bert(transformers.BertForMaskedLM).eval()
    logits = model(ids, attention_mask=(ids != 0).long()).logits
    by_hand = functional.cross_entropy(logits[targets != 0], targets[targets != 0], reduction="sum")
    total, count = losses.masked_lm(model, (ids, targets))
    torch.testing.assert_close(total, by_hand)
    assert count == 3
    with pytest.raises(ValueError, match="BertForMaskedLM does not predict whether the second sentence follows"):
        losses.masked_lm(model, (ids, targets, segments, torch.tensor([1, 0])))
    both = bert(transformers.BertForPreTraining).eval()
    labels = targets.masked_fill(targets == 0, -100)
    theirs = both(ids, (ids != 0).long(), segments, labels=labels, next_sentence_label=torch.tensor([0, 1])).loss
    total, count = losses.masked_lm(both, (ids, targets, segments, torch.tensor([1, 0])))  # 1: follows
    torch.testing.assert_close(total / count, theirs)


def test_encoder_decoder_losses_match_reference():
    source, target = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]]), torch.tensor([[1, 9, 2, 0], [1, 5, 4, 2]])
    model = t5().eval()
    logits = model(source, (source != 0).long(), decoder_input_ids=target[:, :-1]).logits
    by_hand = functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, reduction="sum")
    total, count = losses.translation()(model, (source, target))
    torch.testing.assert_close(total, by_hand)
    assert count == 5
    labels = torch.tensor([[9, 2, -100], [5, 4, 2]])
    mapping = {"input_ids": source, "attention_mask": (source != 0).long(), "labels": labels}
    total, count = losses.model_loss(model, mapping)
    torch.testing.assert_close(total / count, model(**mapping).loss)
    assert int(count) == 5  # they are not shifted: the decoder's inputs are
    right = (model(**mapping).logits.argmax(-1) == labels).sum().item()
    assert evaluate.accuracy(model, [mapping]) == pytest.approx(right / 5)
    assert [step.loss for step in train(t5(), [mapping] * 8, 8)][-1] < model(**mapping).loss.item()


@pytest.mark.parametrize("parts", [2, 5])
def test_gradient_accumulation_weighs_labels_equally(parts):
    """Rows have unequal numbers of labels; the collator of Hugging Face pads them with -100."""
    texts = [TEXT[start : 2 * start + 3] for start in range(5)]
    rows = [{"input_ids": text, "labels": text} for text in texts]
    padded = {
        name: torch.nn.utils.rnn.pad_sequence([row[name] for row in rows], True, value)
        for name, value in (("input_ids", 0), ("labels", -100))
    }
    padded["attention_mask"] = (padded["labels"] != -100).long()
    losses_of = {}
    for number in (1, parts):
        model = gpt2()
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        steps = train(model, [padded] * 3, 3, optimizer=sgd, gradient_accumulation_steps=number)
        losses_of[number] = [step.loss for step in steps]
    assert losses_of[parts] == pytest.approx(losses_of[1], abs=1e-5)
