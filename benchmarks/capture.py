"""What it costs to see every attention map of a forward pass.

A GPT-2 small (12 layers x 12 heads, width 768, vocabulary 50,257; random weights) reads one row of 1,024 tokens in
float32 under `torch.inference_mode`; each row of the table but the plain ones gets all 144 maps. tfviz captures from
the fused model; the others get the maps in the way their documentation gives. All that look at the Hugging Face model
have the same weights, and their maps are compared once before anything is timed.

Time: the rows of a group take turns in one process; medians, and medians of the ratios in each round. A group is a
fresh process, since a peer may patch PyTorch, and each has the plain fused forward of Hugging Face in it. Memory: each
row in a fresh process, its peak resident memory less that of the plain fused forward (TransformerLens too: its own
plain forward is eager and holds all maps already). Peers that are absent are left out.

On a busy machine `--processor` takes the seconds that the process itself kept a core busy, on one thread: the work of
others lengthens those least. It and `--group`, for a group alone, print their table only.

    python benchmarks/capture.py [--quick] [--rounds N] [--group NAME] [--processor]
"""

import copy
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from statistics import median

import torch
import ways
from common import EXACT, MB, Run, extra_memory, fresh, installed, parser, race, ratio, report
from torch import Tensor
from ways import SEED, Size

from tfviz import look

PLAIN = "Hugging Face, fused: plain forward"
GPT, LENS = "tfviz GPT: plain forward", "TransformerLens: plain forward"

# group -> row -> how to run it, and the plain forward that it is compared with
GROUPS: dict[str, dict[str, tuple[Callable[[Size], Run], str]]] = {
    "tfviz": {
        PLAIN: (partial(ways.plain, ways.hugging), PLAIN),
        "tfviz capture, lazy": (partial(ways.lazily, ways.hugging), PLAIN),
        "tfviz capture, uint8": (partial(ways.captured, ways.hugging, torch.uint8), PLAIN),
        "tfviz capture, float16": (partial(ways.captured, ways.hugging, torch.float16), PLAIN),
        "tfviz capture, float32": (partial(ways.captured, ways.hugging, torch.float32), PLAIN),
        "Hugging Face, eager: output_attentions": (ways.eager, PLAIN),
        GPT: (partial(ways.plain, ways.gpt), GPT),
        "tfviz GPT: capture, uint8": (partial(ways.captured, ways.gpt, torch.uint8), GPT),
    },
    "transformer_lens": {
        PLAIN: (partial(ways.plain, ways.hugging), PLAIN),
        LENS: (partial(ways.plain, ways.lens), LENS),
        "TransformerLens: run_with_cache": (ways.lens_cache, LENS),
    },
    "torchlens": {
        PLAIN: (partial(ways.plain, ways.hugging), PLAIN),
        "TorchLens, eager: record softmax": (ways.torchlens_softmax, PLAIN),
        "TorchLens, fused: trace, pattern facets": (ways.torchlens_pattern, PLAIN),
    },
    "nnsight": {
        PLAIN: (partial(ways.plain, ways.hugging), PLAIN),
        "nnsight, eager: trace, attention weights saved": (ways.nnsight_eager, PLAIN),
        "nnsight, fused: trace, softmax by hand": (ways.nnsight_fused, PLAIN),
    },
}


def check(maps: Iterable[Tensor] | look.Capture, size: Size, expected: Iterable[Tensor] | None) -> None:
    """All maps are there, and are those that the eager model computes."""
    maps = maps.values() if isinstance(maps, look.Capture) else maps
    maps = [look.dequantize(found) for found in maps]
    assert len(maps) == size.layers
    assert {tuple(found.shape) for found in maps} == {(1, size.heads, size.tokens, size.tokens)}
    for found, wanted in zip(maps, expected or []):
        torch.testing.assert_close(found, wanted, atol=0.004, rtol=0)


def timed(group: str, quick: bool, rounds: int, processor: bool) -> dict[str, list[float]]:
    warnings.simplefilter("ignore")
    if processor:
        torch.set_num_threads(1)
    size = Size.of(quick)
    runs = {name: build(size) for name, (build, _) in GROUPS[group].items()}
    own = {"tfviz GPT: capture, uint8"} | (set() if _wraps() else {"TransformerLens: run_with_cache"})
    with torch.inference_mode():
        for name, (_, base) in GROUPS[group].items():
            if name != base:
                check(runs[name]()[1], size, None if name in own else ways.eager(size)()[1])
        return race(runs, rounds, time.process_time if processor else time.perf_counter)


def _wraps() -> bool:
    """Whether TransformerLens looks at the Hugging Face model, as it does from version 4."""
    return int((installed("transformer_lens") or "0").split(".")[0]) >= 4


def memory(group: str, name: str, quick: bool) -> float:
    warnings.simplefilter("ignore")
    size, members = Size.of(quick), GROUPS[group]
    build, base = members[name]
    usual, run = members[GPT if base == GPT else PLAIN][0](size), build(size)
    with torch.inference_mode():
        return extra_memory(usual, run)


def afterwards(quick: bool, rounds: int) -> float:
    """How long a model takes that was ways.captured, against a twin that never was."""
    size = Size.of(quick)
    never = ways.hugging(size)
    once, x = copy.deepcopy(never), ways.ids(size)
    with torch.inference_mode():
        ways.captured(lambda _: once, torch.uint8, size)()  # entered and left
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in once.modules()), "a hook was left behind"
        assert torch._C._len_torch_function_stack() == 0, "a mode was left behind"
        times = race({"never": lambda: never(x), "once": lambda: once(x)}, rounds)
    return ratio(times, "once", "never")


def table(groups: Iterable[str], quick: bool, rounds: int, processor: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    for group in groups:
        members = GROUPS[group]
        if group != "tfviz" and not installed(group):
            rows.append([f"{group}: not installed", *["–"] * 4])
            continue
        times = fresh(timed, group, quick, rounds, processor)
        for name, (_, base) in members.items():
            extra = "–" if name in (PLAIN, GPT) else f"{fresh(memory, group, name, quick, env=EXACT) / MB:,.0f}"
            ratios = (f"{ratio(times, name, against):.2f}" for against in (base, PLAIN))
            shown = f"{name} (beside {group})" if name == PLAIN else name
            rows.append([shown, f"{median(times[name]):.4g}", *ratios, extra])
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--group", choices=GROUPS)
    options.add_argument("--processor", action="store_true")
    given = options.parse_args()
    part = bool(given.group) or given.processor
    rows = table([given.group] if given.group else GROUPS, given.quick, given.rounds, given.processor)
    notes = []
    if not part:
        left = fresh(afterwards, given.quick, given.rounds)
        rows.append(["Hugging Face, fused: plain, after capture was left", "–", f"{left:.2f}", f"{left:.2f}", "–"])
        notes = ["The last row's ratio is to a twin model that was never captured; no hook and no mode was left."]
    looked = ("transformers", "transformer_lens", "torchlens", "nnsight")
    peers = ", ".join(f"{p} {installed(p) or 'absent'}" for p in looked)
    seconds = "processor seconds, one thread" if given.processor else "seconds"
    header = ["", seconds, "ratio to its own plain forward", "ratio to Hugging Face, fused", "extra memory, MB"]
    notes = [" ".join([f"{Size.of(given.quick)}, batch 1, float32; {given.rounds} rounds. {peers}.", *notes])]
    report("capture", "Capture", header, rows, seeds=[SEED], quick=given.quick or part, notes=notes)


if __name__ == "__main__":
    main()
