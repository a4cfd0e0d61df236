"""Training on data loaders: epochs, resuming at the right batch, invalid batches, and mappings of tensors."""

import gc
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from trainings import TEXT, equal_states, gpt, run, state_of, train, windows

from tfviz.learn import checkpoint, evaluate, fit, losses
from tfviz.learn.batch import Epochs, split, tensors

ROWS = TEXT[:160].view(20, 8)
DATA = TensorDataset(ROWS[:, :-1], ROWS[:, 1:])


class Stream(IterableDataset):
    """Rows with a random token each, drawn from PyTorch's own generator, and of no known number."""

    def __iter__(self):
        for row in ROWS[:18]:
            noisy = row.clone()
            noisy[torch.randint(8, ())] = torch.randint(11, ())
            yield noisy[:-1], noisy[1:]


LOADERS = {
    "in order": lambda: DataLoader(DATA, batch_size=4),
    "shuffled": lambda: DataLoader(DATA, batch_size=4, shuffle=True),
    "seeded": lambda: DataLoader(DATA, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)),
    "a part at a time": lambda: DataLoader(
        DATA,
        batch_size=3,
        sampler=torch.utils.data.RandomSampler(DATA, num_samples=13, generator=torch.Generator().manual_seed(3)),
    ),
    "no length": lambda: DataLoader(Stream(), batch_size=4),
    "workers": lambda: DataLoader(DATA, batch_size=4, shuffle=True, num_workers=1),
    "an iterator": lambda: iter([windows()[step] for step in range(12)]),
    "any iterable": lambda: {f"batch {step}": windows()[step] for step in range(5)}.values(),
}


def recorded_inputs(batches, steps, **options):
    """Return the inputs of each step's batch."""
    seen = []

    def loss(model, batch):
        seen.append(batch[0].tolist())
        return losses.next_token(model, batch)

    list(train(gpt(), batches, steps, loss=loss, **options))
    return seen


def test_loader_is_iterated_epoch_after_epoch():
    in_order = [ROWS[start : start + 4, :-1].tolist() for start in (0, 4, 8, 12, 16)]
    assert recorded_inputs(LOADERS["in order"](), 12) == [*in_order, *in_order, *in_order[:2]]
    shuffled = recorded_inputs(LOADERS["shuffled"](), 10)
    for epoch in (shuffled[:5], shuffled[5:]):
        assert sorted(row for batch in epoch for row in batch) == sorted(ROWS[:, :-1].tolist())
    assert shuffled[:5] != shuffled[5:]


def test_shuffled_loader_depends_only_on_the_seed():
    expected = recorded_inputs(LOADERS["shuffled"](), 7)
    torch.manual_seed(6)
    assert recorded_inputs(LOADERS["shuffled"](), 7) == expected
    assert recorded_inputs(LOADERS["shuffled"](), 7, seed=1) != expected
    model, loader = gpt(), LOADERS["shuffled"]()
    torch.manual_seed(6)
    state = torch.get_rng_state()
    run(model, 7, loader)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("name", "stop"), [*((name, 7) for name in LOADERS), ("shuffled", 2)])
def test_resumed_run_continues_at_the_right_batch(tmp_path, name, stop):
    whole, stopped, resumed = gpt(), gpt(), gpt()
    expected = run(whole, 9, LOADERS[name]())
    for step in train(stopped, LOADERS[name](), 9, checkpoint_dir=tmp_path):
        if step.step + 1 == stop:
            break
    gc.collect()
    assert int(checkpoint.list_checkpoints(tmp_path)[-1].name[-9:]) == stop
    torch.manual_seed(99)
    assert run(resumed, 9, LOADERS[name](), checkpoint_dir=tmp_path) == expected
    assert equal_states(state_of(resumed), state_of(whole))


def test_steps_default_to_one_epoch():
    assert len(run(gpt(), None, LOADERS["in order"]())) == 5
    assert len(run(gpt(), None, [windows()[0]] * 3)) == 3
    for batches in (LOADERS["no length"](), windows(), iter([])):
        with pytest.raises(ValueError, match=r"whose length is unknown; give steps"):
            fit(gpt(), batches)


@pytest.mark.parametrize(
    ("batches", "says"),
    [
        (lambda: iter([windows()[0]] * 2), r"batches\[2\] does not exist .*ended after 2 batches: it is an iterator"),
        (lambda: DataLoader(EmptyDataset(), batch_size=2), r"batches\[0\] does not exist .*its epoch is empty"),
        (lambda: DataLoader([1, 2, 3]), r"batches\[0\] is a tensor of shape \[1\]; it must be a tuple"),
        (lambda: DataLoader(["a"]), r"batches\[0\] holds 'a'; it must be"),
        (lambda: [{"input_ids": torch.ones(2, 7), "words": ["a", "b"]}] * 3, r"holds a list as 'words'"),
        (lambda: [{"input_ids": torch.ones(2, 7), "labels": torch.ones(3, 7)}] * 3, r"has parts of \[2, 3\] rows"),
        (lambda: [{}] * 3, r"batches\[0\] is a dictionary"),
    ],
)
def test_invalid_batches_raise(batches, says):
    with pytest.raises((LookupError, TypeError, ValueError), match=says):
        run(gpt(), 3, batches())


class EmptyDataset(IterableDataset):
    def __iter__(self):
        return iter([])


def test_epochs_allow_only_sequential_access():
    epochs = Epochs([1, 2, 3], seed=0)
    assert [epochs[0], epochs[1], epochs[4]] == [1, 2, 2]
    with pytest.raises(LookupError, match="in order"):
        epochs[4]


class Output(dict):
    __getattr__ = dict.get


class ModelWithLoss(nn.Module):
    """A model that computes its own loss, as Hugging Face's do: a mean over labels other than -100."""

    main_input_name, config = "input_ids", None

    def __init__(self, kind="ForTokenClassification"):
        super().__init__()
        self.model, self.loss_type = gpt(dropout=0.0), kind

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.model(input_ids)
        if labels is None:
            return Output(logits=logits)
        shift = self.loss_type == "ForCausalLM"
        kept, targets = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
        return Output(logits=logits, loss=nn.functional.cross_entropy(kept.flatten(0, 1), targets.flatten()))


def mapping(step, batch=5):
    """Inputs of different numbers of labels a row, and none in the last."""
    inputs, labels = windows(batch)[step]
    counts = torch.tensor([7, 2, 5, 1, 0])[:batch, None]
    return {
        "input_ids": inputs,
        "attention_mask": torch.ones_like(inputs),
        "labels": labels.masked_fill(torch.arange(7) >= counts, -100),
    }


@pytest.mark.parametrize("kind", ["ForTokenClassification", "ForCausalLM"])
def test_model_loss_weighs_labels_equally(kind):
    model, batch = ModelWithLoss(kind), mapping(0)
    total, count = losses.model_loss(model, batch)
    logits = model.model(batch["input_ids"])
    shift = kind == "ForCausalLM"
    pairs = [
        (logits[row, at - shift], label)
        for row in range(5)
        for at, label in enumerate(batch["labels"][row])
        if label != -100 and at >= shift
    ]
    expected = -sum(logit.log_softmax(-1)[label] for logit, label in pairs)
    assert int(count) == len(pairs) == (11 if shift else 15)
    torch.testing.assert_close(total, expected)
    nothing = {**batch, "labels": torch.full_like(batch["labels"], -100)}
    total, count = losses.model_loss(model, nothing)
    total.backward()
    assert (total.item(), int(count)) == (0.0, 0)
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    mean = evaluate.loss(model, [batch, nothing, mapping(1)])
    (first, first_count), (second, second_count) = (losses.model_loss(model, one) for one in (batch, mapping(1)))
    assert mean == pytest.approx(((first + second) / (first_count + second_count)).item(), rel=1e-6)
    right = sum(int(logit.argmax() == label) for logit, label in pairs)
    assert evaluate.accuracy(model, [batch, nothing]) == pytest.approx(right / len(pairs))


@pytest.mark.parametrize("kind", ["ForTokenClassification", "ForCausalLM"])
def test_mappings_train_like_tuples_and_accumulate(kind):
    steps = {}
    for parts in (1, 3, 5):  # at five, the last part has no label
        model = ModelWithLoss(kind)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = [mapping(step) for step in range(4)]
        steps[parts] = [step.loss for step in train(model, batches, optimizer=sgd, gradient_accumulation_steps=parts)]
    assert steps[3] == pytest.approx(steps[1], abs=1e-5)
    assert steps[5] == pytest.approx(steps[1], abs=1e-5)
    if kind == "ForTokenClassification":
        full = [{"input_ids": windows()[step][0], "labels": windows()[step][1]} for step in range(4)]
        found = [step.loss for step in train(ModelWithLoss(kind), full, 4)]
        assert found == pytest.approx([loss for _, loss, _ in run(gpt(dropout=0.0), 4)], abs=1e-6)


def test_split_distributes_rows_over_processes():
    batch = {"a": torch.arange(7), "b": torch.arange(14).view(7, 2)}
    parts = list(split(batch, rank=1, processes=2, parts=2))
    assert [part["a"].tolist() for part in parts] == [[1, 3], [5]]
    assert [part["b"].tolist() for part in parts] == [[[2, 3], [6, 7]], [[10, 11]]]
    assert [[part.tolist() for part in one] for one in split(tensors(batch), 1, 2, 3)] == [
        [[1], [[2, 3]]],
        [[3], [[6, 7]]],
        [[5], [[10, 11]]],
    ]


def test_errors_name_the_entries_of_a_mapping():
    with pytest.raises(TypeError) as error:
        run(gpt(), 1, [{"ids": torch.ones(2, 7).long(), "labels": torch.ones(2, 7).long()}])
    assert "the batch was (ids: int64 [2, 7], labels: int64 [2, 7]), the model a GPT" in error.value.__notes__[0]
    ids = {"input_ids": torch.ones(2, 7).long()}
    measures = (
        partial(run, ModelWithLoss(), 1),
        partial(evaluate.loss, ModelWithLoss()),
        partial(evaluate.accuracy, ModelWithLoss()),
    )
    for measure in measures:
        with pytest.raises(ValueError, match=r"the batch has input_ids but no labels, .* add labels"):
            measure([ids])
    with pytest.raises(ValueError, match="without a loss; give the model with its head"):
        evaluate.loss(ModelWithoutLoss(), [{**ids, "labels": ids["input_ids"]}])


class ModelWithoutLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = gpt()

    def forward(self, input_ids, labels):
        return Output(logits=self.model(input_ids))


def test_adversarial_loss_accepts_mappings():
    model = ModelWithLoss()
    loss = losses.adversarial(losses.model_loss)
    found = [step.loss for step in train(model, [mapping(step) for step in range(3)], 3, loss=loss)]
    assert found[0] > losses.model_loss(ModelWithLoss(), mapping(0))[0].item() / 15
