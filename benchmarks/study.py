"""A sweep over all heads beside TransformerLens and nnsight, and scores of heads over a data set.

A GPT-2 small (12 layers x 12 heads, width 768, vocabulary 50,257; random weights, the same for all) reads 32 prompts of
16 tokens in float32. Each of its 144 heads is zeroed in a run of its own, and the difference of two logits at the last
position is taken. tfviz does `study.patch(source="zero")`; TransformerLens and nnsight loop over heads in the way their
documentation gives: for them one head of each layer is run, and the time is multiplied up to all heads, since each run
is a whole forward. The values of those heads are compared before anything is reported.

tfviz keeps the output of each block, so that no block before a patch is run again, and runs as many patches at a time
as fill 1,024 positions, two of these batches (`batch_size` sets it): memory for time. It computes the two logits of the
last position alone, which are all that the metric reads, and saves the memory of the others.

Each tool runs in a fresh process, in turn within a round; the plain forward of Hugging Face stands beside it, and
ratios are to 144 of those. Memory: the peak of resident memory less that of the plain forward.

The second table is `study.aggregate` with `HeadScores` over texts of 128 tokens, beside forwards of the same batches.

    python benchmarks/study.py [--quick] [--rounds N] [--processor]
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import ways
from common import EXACT, MB, Run, clock, extra_memory, fresh, installed, parser, report
from torch import Tensor
from ways import SEED, Size

from tfviz import models, study

PROMPTS, TOKENS = 32, 16
TEXTS, LENGTH, BATCH = 256, 128, 16
TOOLS = ("tfviz", "transformer_lens", "nnsight")
RIGHT, OTHER = 3, 5


def sizes(quick: bool) -> Size:
    return Size(layers=2, heads=2, dim=64, vocab_size=500, tokens=TOKENS) if quick else Size(tokens=TOKENS)


def prompts(size: Size) -> Tensor:
    return torch.randint(size.vocab_size, (PROMPTS, TOKENS), generator=torch.Generator().manual_seed(SEED))


difference = study.logit_difference(RIGHT, OTHER)


def by_tfviz(size: Size) -> Callable[[], Tensor]:
    """All heads."""
    model, x = ways.hugging(size), prompts(size)
    return lambda: study.patch(model, x, metric=difference, source="zero", progress=False).values


def by_transformer_lens(size: Size) -> Callable[[], Tensor]:
    """The first head of each layer."""
    model, x = ways.lens(size), prompts(size)

    def zero(z: Tensor, hook: object) -> Tensor:
        z[:, :, 0] = 0
        return z

    def run() -> Tensor:
        plain = difference(model(x))
        changes = [
            difference(model.run_with_hooks(x, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", zero)])) - plain
            for layer in range(size.layers)
        ]
        return torch.stack(changes)

    return run


def by_nnsight(size: Size) -> Callable[[], Tensor]:
    """The first head of each layer."""
    model, x, width = ways.sight(size, "sdpa"), prompts(size), size.dim // size.heads

    def ablated(layer: int | None) -> Tensor:
        with model.trace(x):
            if layer is not None:
                model.transformer.h[layer].attn.c_proj.input[..., :width] = 0
            logits = model.lm_head.output.save()
        return difference(logits)

    def run() -> Tensor:
        plain = ablated(None)
        return torch.stack([ablated(layer) - plain for layer in range(size.layers)])

    return run


SWEEPS = {"tfviz": by_tfviz, "transformer_lens": by_transformer_lens, "nnsight": by_nnsight}


def sweep(tool: str, quick: bool, processor: bool) -> tuple[list[float], float, float]:
    """The values of each layer's first head; seconds of the whole sweep, and of one plain forward."""
    warnings.simplefilter("ignore")
    if processor:
        torch.set_num_threads(1)
    now = time.process_time if processor else time.perf_counter
    size = sizes(quick)
    model, x = ways.hugging(size), prompts(size)
    with torch.inference_mode() if tool != "tfviz" else torch.no_grad():
        run = SWEEPS[tool](size)
        model(x)
        forwards = [clock(partial(model, x), now) for _ in range(2)]
        values: list[Tensor] = []
        seconds = clock(lambda: values.append(run()), now)
        forwards += [clock(partial(model, x), now) for _ in range(2)]
    whole = seconds if tool == "tfviz" else seconds * size.layers * size.heads / (size.layers + 1)
    return values[0].reshape(size.layers, -1)[:, 0].tolist(), whole, median(forwards)


def memory(tool: str, quick: bool) -> float:
    warnings.simplefilter("ignore")
    size = sizes(quick)
    model, x = ways.hugging(size), prompts(size)
    with torch.inference_mode() if tool != "tfviz" else torch.no_grad():
        run = SWEEPS[tool](size)
        return extra_memory(partial(model, x), run)


def scores(which: str, quick: bool, processor: bool, rounds: int) -> tuple[float, float]:
    """Seconds of scoring every head over the texts, and of their forwards alone."""
    warnings.simplefilter("ignore")
    if processor:
        torch.set_num_threads(1)
    now = time.process_time if processor else time.perf_counter
    texts = TEXTS // 8 if quick or which == "GPT-2 small" else TEXTS
    if which == "GPT-2 small":
        model = ways.hugging(
            Size(layers=2, heads=2, dim=64, vocab_size=500, tokens=LENGTH) if quick else Size(tokens=LENGTH)
        )
        vocab_size = 500 if quick else 50257
    else:
        torch.manual_seed(SEED)
        vocab_size = 65
        model = models.GPT(vocab_size, layers=4, heads=4, dim=128, context=LENGTH).eval()
    ids = torch.randint(vocab_size, (texts, LENGTH), generator=torch.Generator().manual_seed(SEED))
    batches = list(ids.split(BATCH))

    def plain() -> None:
        with torch.no_grad():
            for batch in batches:
                model(batch)

    def scored() -> object:
        return study.aggregate(model, batches, study.HeadScores(), progress=False)

    runs: dict[str, Run] = {"plain": plain, "scored": scored}
    times = {name: [clock(run, now) for run in [run] * (rounds + 1)][1:] for name, run in runs.items()}
    return median(times["scored"]), median(times["plain"])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--processor", action="store_true")
    given = options.parse_args()
    size, rows = sizes(given.quick), []
    tools = [tool for tool in TOOLS if tool == "tfviz" or installed(tool)]
    taken = {tool: [fresh(sweep, tool, given.quick, given.processor)] for tool in tools}
    reference = torch.tensor(taken["tfviz"][0][0])
    for tool in tools:
        torch.testing.assert_close(torch.tensor(taken[tool][0][0]), reference, atol=1e-4, rtol=0)
    for _ in range(given.rounds - 1):
        for tool in tools:
            taken[tool].append(fresh(sweep, tool, given.quick, given.processor))
    heads = size.layers * size.heads
    own = median(seconds for _, seconds, _ in taken["tfviz"])
    for tool in tools:
        seconds = median(whole for _, whole, _ in taken[tool])
        relative = median(whole / (heads * forward) for _, whole, forward in taken[tool])
        extra = fresh(memory, tool, given.quick, env=EXACT) / MB
        rows.append(
            [
                f"{tool} {installed(tool) or ''}",
                f"{seconds:.4g}",
                f"{relative:.2f}",
                f"{seconds / own:.2f}",
                f"{extra:,.0f}",
            ]
        )
    for which in ("GPT-2 small", "GPT of 4 layers, width 128"):
        scored, plain = fresh(scores, which, given.quick, given.processor, given.rounds)
        rows.append([f"`over`, scores of all heads: {which}", f"{scored:.4g}", f"{scored / plain:.2f}", "–", "–"])
    absent = [tool for tool in TOOLS if tool not in tools]
    notes = [
        f"{size}, {PROMPTS} prompts, float32; {given.rounds} rounds, each in a fresh process. The third column is to "
        f"{heads} plain forwards of Hugging Face; for `over`, to the forwards of the same texts of {LENGTH} tokens in "
        f"batches of {BATCH}." + (f" Absent: {', '.join(absent)}." if absent else "")
    ]
    seconds = "processor seconds, one thread" if given.processor else "seconds"
    header = ["", seconds, "ratio to plain forwards", "ratio to tfviz", "extra memory, MB"]
    report(
        "study",
        "Sweeps over heads, and scores over a data set",
        header,
        rows,
        seeds=[SEED],
        quick=given.quick,
        notes=notes,
    )


if __name__ == "__main__":
    main()
