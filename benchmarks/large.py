"""The means of training large models, and tfviz's modules beside plain torch.nn.

First: a `models.GPT` with rotary positions trained by `learn.fit` on random ids, plain and with each of the means, in
turns, a step at a time; the losses are those after the same steps from the same seed.

Second: one training loop around tfviz's modules and around PyTorch's (`nn.TransformerEncoder`, `nn.Transformer`) with
the same weights, whose logits are first asserted to be the same. PyTorch's drop attention weights and the inside of the
feed-forward network too, and are told of the target's padding, which a causal mask makes needless: that is "as it
comes". "Trimmed", they do what tfviz does and no more.

Medians of times, and of the ratios in each round, with the memory settings of `fit`. Peaks: in fresh processes, where
glibc gives freed tensors back at once (`fit` is kept from changing that): of a step after the first, over what is
resident before it, plus AdamW's two moments.

    python benchmarks/large.py [--quick] [--rounds N]
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any
from unittest import mock

import torch
from common import EXACT, MB, Run, clock, extra_memory, fresh, parser, race, ratio, report
from torch import Tensor, nn
from torch.nn import functional

from tfviz import learn, models, text
from tfviz.layers import positions

SEED, VOCAB_SIZE, DROPOUT = 0, 512, 0.1
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
ACCUMULATED, RECOMPUTED = {"gradient_accumulation_steps": 8}, {"gradient_checkpointing": True}
MEANS: list[dict[str, Any]] = [{}, {"precision": "bfloat16"}, ACCUMULATED, RECOMPUTED, ACCUMULATED | RECOMPUTED]
MEANS += [{"compile": True}] if COMPILER else []
LARGE, TINY = {"layers": 6, "dim": 256, "heads": 8, "context": 256}, {"layers": 2, "dim": 32, "heads": 4}
BESIDE: dict[str, dict[str, int]] = {
    "GPT 4 x 128, context 64, batch 12": {"layers": 4, "dim": 128, "heads": 4, "context": 64, "batch": 12},
    "GPT 6 x 256, context 256, batch 8": {**LARGE, "batch": 8},
    "encoder-decoder 3 + 3 x 128": {"layers": 3, "dim": 128, "heads": 4, "inner": 512, "context": 64, "tokens": 2000},
}
future = partial(nn.Transformer.generate_square_subsequent_mask, dtype=torch.bool)  # True where forbidden
RENAMED = r"""^(decoder.*)feed_forward_norm \1norm3   feed_forward_norm|cross_norm norm2   attention_norm norm1
feed_forward\.0 linear1  feed_forward\.2 linear2  attention\. self_attn.  cross\. multihead_attn.  in_proj\. in_proj_
^(encoder|decoder)_norm stack.\1.norm   ^(encoder|decoder)\. stack.\1.layers.   ^norm stack.norm   ^blocks stack.layers
^positions\.vectors positions"""  # weights of tfviz, those of PyTorch


class PlainGPT(nn.Module):
    def __init__(self, layers: int, dim: int, heads: int, context: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB_SIZE, dim), nn.Embedding(context, dim)
        self.dropout = nn.Dropout(DROPOUT)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, DROPOUT, "gelu", batch_first=True, norm_first=True)
        self.stack = nn.TransformerEncoder(layer, layers, nn.LayerNorm(dim))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.dropout(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        return functional.linear(self.stack(x, future(ids.shape[1]), is_causal=True), self.tokens.weight)


class PlainTransformer(nn.Module):
    def __init__(self, layers: int, dim: int, heads: int, inner: int, context: int) -> None:
        super().__init__()
        self.source = self.target = nn.Embedding(VOCAB_SIZE, dim)
        self.dropout, self.mask_target = nn.Dropout(DROPOUT), True
        self.stack = nn.Transformer(dim, heads, layers, layers, inner, DROPOUT, batch_first=True, norm_first=True)
        self.register_buffer("waves", positions.sinusoids(torch.arange(context), dim), persistent=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        masks = {"src_key_padding_mask": source == 0, "memory_key_padding_mask": source == 0, "tgt_is_causal": True}
        masks |= {"tgt_key_padding_mask": target == 0} if self.mask_target else {}
        scale, both = self.source.embedding_dim**0.5, (source, target)
        x, y = (self.dropout(self.source(ids) * scale + self.waves[: ids.shape[1]]) for ids in both)
        states = self.stack(x, y, tgt_mask=future(target.shape[1]), **masks)
        return functional.linear(states, self.target.weight)


def trim(module: nn.Module) -> None:
    if isinstance(module, nn.MultiheadAttention):
        module.dropout = 0.0
    elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        module.dropout = nn.Identity()


def twin(ours: nn.Module, plain: nn.Module, inputs: tuple[Tensor, ...]) -> nn.Module:
    """`plain` with the weights of `ours`: it then computes the same."""
    state = ours.state_dict()
    for pattern, name in re.findall(r"(\S+)\s+(\S+)", RENAMED):
        state = {re.sub(pattern, name, key): value for key, value in state.items()}
    plain.load_state_dict(state)
    real = inputs[-1] != 0
    torch.testing.assert_close(ours.eval()(*inputs)[real], plain.eval()(*inputs)[real], atol=1e-4, rtol=1e-4)
    return plain


def loop(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list, loss: learn.losses.Loss) -> int:
    """Train on these batches; returns how many tokens were predicted."""
    predicted = 0
    for batch in batches:
        total, count = loss(model, batch)
        (total / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        predicted += count
    return predicted


def beside(name: str, quick: bool) -> tuple[dict[str, Run], int]:
    """Training by each kind of modules, and the number of parameters."""
    shape, draw = BESIDE[name] | (TINY if quick else {}), partial(torch.randint, 1, VOCAB_SIZE)
    torch.manual_seed(SEED)
    if "batch" in shape:
        ours, plain, loss = models.GPT, PlainGPT, learn.losses.next_token
        some = text.Windows(draw((20_000,)), shape["context"], shape.pop("batch"), seed=SEED)
    else:
        ours, plain, loss = models.Transformer, PlainTransformer, learn.losses.translation()
        source, target = ([draw((n,)) for n in torch.randint(5, 41, (2000,)).tolist()] for _ in range(2))
        some = text.Buckets(source, text.add_special_tokens(target, bos=1), max_tokens=shape.pop("tokens"), seed=SEED)
    batches = [some[step] for step in range(2)]
    inputs = batches[0][: 1 if plain is PlainGPT else 2]
    found = {"tfviz": ours(VOCAB_SIZE, dropout=DROPOUT, **shape)}
    found |= {who: twin(found["tfviz"], plain(**shape), inputs) for who in ("as it comes", "trimmed")}
    found["trimmed"].apply(trim).mask_target = False
    runs = {who: partial(loop, m.train(), learn.adamw(m, lr=1e-3), batches, loss) for who, m in found.items()}
    return runs, sum(map(Tensor.numel, found["tfviz"].parameters()))


def means(_: str, quick: bool) -> tuple[dict[str, Run], int]:
    """`fit` with each of the means, a call a step, which returns its loss; and the number of parameters."""
    shape = TINY | {"context": 16} if quick else LARGE
    fit = partial(learn.fit, lr=1e-3, schedule=learn.schedule.constant, seed=SEED, device="cpu", progress=False)
    runs: dict[str, Run] = {}
    for mean in MEANS:
        torch.manual_seed(SEED)
        batches = text.Windows(torch.randint(VOCAB_SIZE, (20_000,)), shape["context"], 16, seed=SEED)
        model = models.GPT(VOCAB_SIZE, positions=positions.Rotary, **shape)
        name = ", ".join(f"{key}={value}" for key, value in mean.items()) or "plain"
        runs[name] = partial(lambda steps: next(steps).loss, fit(model, batches, 1000, **mean))
    return runs, sum(map(Tensor.numel, model.parameters()))


def timed(name: str, quick: bool, rounds: int) -> list[Any]:
    """Parameters, seconds of each first call, seconds of the rounds, what a last call returned."""
    runs, parameters = (beside if name in BESIDE else means)(name, quick)
    return [parameters, {who: clock(runs[who]) for who in runs}, race(runs, rounds), {who: runs[who]() for who in runs}]


def megabytes(name: str, who: str, quick: bool) -> float:
    with mock.patch.object(memory, "keep"):
        runs, parameters = (beside if name in BESIDE else means)(name, quick)
    runs[who]()
    return (extra_memory(lambda: None, runs[who]) + 8 * parameters) / MB


def rows(name: str, quick: bool, rounds: int) -> Iterator[list[str]]:
    parameters, first, times, last = fresh(timed, name, quick, rounds)
    peaks = {who: fresh(megabytes, name, who, quick, env=EXACT) for who in times}
    base = next(iter(times))
    for who in times:
        seconds, share = median(times[who]), peaks[who] / peaks[base]
        speed = f"{last[who] / seconds:,.0f}" if name in BESIDE else f"{seconds:.3g}"
        found = [speed, f"{ratio(times, who, base):.2f}", f"{peaks[who]:,.0f}"]
        if name in BESIDE:
            yield [f"{name}: {who}", f"{parameters:,}", *found, f"{1 / share:.2f}"]
        else:
            yield [who, *found, f"{share:.2f}", f"{last[who]:.5f}", f"{first[who]:.1f}"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as empty:  # nothing was compiled before
        os.environ |= {"PYTHONWARNINGS": "ignore", "TORCHINDUCTOR_CACHE_DIR": empty}
        trained = list(rows("", given.quick, given.rounds))
        others = [row for name in BESIDE for row in rows(name, given.quick, given.rounds)]
    trained += [] if COMPILER else [["compile: no C++ compiler here", *6 * "–"]]
    first = ["", "seconds a step", "of plain", "peak, MB", "of plain", "loss", "first step, seconds"]
    second = ["", "parameters", "tokens/s", "tfviz's speed, of its (aim ≥ 1)", "peak, MB", "tfviz's, of its (aim ≤ 1)"]
    notes = [
        f"{LARGE}, batch 16; {given.rounds} rounds; losses in nats after {given.rounds + 3} steps.",
        "## Beside plain torch.nn\n\n"
        + "\n".join(f"| {' | '.join(row)} |" for row in [second, ["---", *5 * ["---:"]], *others]),
        f"Dropout {DROPOUT}, vocabulary {VOCAB_SIZE}; tokens are those predicted. The encoder-decoder's rows have "
        "5 to 40 tokens, its batches at most 2,000 a language, padding included.",
    ]
    report("large", "Training large models", first, trained, seeds=[SEED], quick=given.quick, notes=notes)


if __name__ == "__main__":
    main()
