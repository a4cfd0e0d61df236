"""Capture, training and generation on a GPU: one command, for a machine with little on it.

Ceiling: a product of two 8,192 x 8,192 bfloat16 matrices. Capture: all 144 maps of a GPT-2 small of random weights,
1,024 tokens, batch 1, kept as uint8, against the plain fused forward, in turns; memory is the allocator's peak above
that of the plain forward. Training: a GPT of 24 layers, 16 heads, width 1,024 on random tokens, 16 x 1,024 a step, in
bfloat16 by `learn.fit`, after 10 steps to warm up; utilisation counts 6 FLOPs for each weight and token and
12 x layers x width x context for the attention (causal not halved), against the ceiling. Generation: greedy, one
sequence, 8 tokens continued by 128. Rows of Hugging Face come with `transformers`.

It needs torch, numpy, matplotlib, safetensors, tqdm, typeguard and, for training, accelerate; tfviz need not be
installed. After each measurement `OUT/gpu.json` and `OUT/gpu.md` are written; a second call goes on with what is
missing. What was skipped stands in both, with the reason. Without a GPU, `--device cpu --quick` rehearses it.

    python benchmarks/gpu.py [--quick] [--rounds N] [--minutes N] [--out FOLDER] [--device cuda]
"""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # of the clone, where tfviz is not installed
NEEDED = ("torch", "numpy", "matplotlib", "safetensors", "tqdm", "typeguard")
if missing := [name for name in NEEDED if find_spec(name) is None]:
    sys.exit(f"gpu.py needs {', '.join(missing)}: pip install {' '.join(missing)}")

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from statistics import median

import torch
from common import MB, RESULTS, Run, parser, race, ratio, report, settle
from generate import PROMPT, SMALL, gpt, hugging, peer
from resumed import Measurements

from tfviz import generate, layers, learn, look, models, text

SEED, WARMUP = 0, 10
LARGE = {"vocab_size": 50304, "layers": 24, "heads": 16, "dim": 1024, "context": 1024}
TINY = {"vocab_size": 500, "layers": 2, "heads": 2, "dim": 128, "context": 64}
HEADER = ["", "speed", "compared", "peak memory above the weights, MB"]
Rows = Iterator[list[str]]


def used(run: Run) -> float:
    """The allocator's peak during a call, in MB above what was there before; NaN on a CPU."""
    if not torch.cuda.is_available():
        run()
        return float("nan")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept = run()
    settle()
    del kept
    return (torch.cuda.max_memory_allocated() - before) / MB


def ceiling(side: int, device: str) -> Rows:
    """FLOPs in a second that a large product of bfloat16 matrices reaches."""
    a, b = (torch.randn(side, side, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = race({"product": lambda: [a @ b for _ in range(10)][-1]}, 10)["product"]
    yield ["ceiling: bfloat16 product", f"{10 * 2 * side**3 / median(seconds) / 1e12:.3g} TFLOP/s", "–", "–"]


def twins(shape: dict[str, int], dtype: torch.dtype, device: str) -> dict[str, torch.nn.Module]:
    """tfviz's GPT and, if it is installed, Hugging Face's with the same weights."""
    model = gpt(**shape)
    both = {"tfviz GPT": model} | ({"Hugging Face": hugging(model, **shape)} if find_spec("transformers") else {})
    return {name: one.to(device, dtype) for name, one in both.items()}


@torch.inference_mode()
def capture(shape: dict[str, int], dtype: torch.dtype, device: str, rounds: int) -> Rows:
    x = torch.randint(shape["vocab_size"], (1, shape["context"]), device=device)
    for name, model in twins(shape, dtype, device).items():

        def plain(model=model) -> object:
            return model(x)

        def seeing(model=model) -> tuple:
            with look.capture(model, "*.pattern", dtype=torch.uint8) as seen:
                return model(x), seen

        times = race({"plain": plain, "seeing": seeing}, rounds)
        what, extra = f"{name}, {str(dtype)[6:]}", used(seeing) - used(plain)
        yield [f"{what}: plain forward", f"{1000 * median(times['plain']):.2f} ms", "–", f"{used(plain):,.0f}"]
        slower = f"{ratio(times, 'seeing', 'plain'):.2f} x plain"
        yield [f"{what}: capture", f"{1000 * median(times['seeing']):.2f} ms", slower, f"+{extra:,.0f}"]


def train(shape: dict[str, int], batch: int, steps: int, compile: bool, device: str, peak: float) -> Rows:
    torch.manual_seed(SEED)
    model = models.GPT(positions=layers.positions.Rotary, **shape)
    context, started = shape["context"], 0.0
    batches = text.Windows(torch.randint(shape["vocab_size"], (1_000_000,)), context, batch, seed=SEED)

    def run() -> None:
        nonlocal started
        plan = {"lr": 3e-4, "seed": SEED, "precision": "bfloat16", "compile": compile, "progress": False}
        for step in learn.fit(model, batches, WARMUP + steps, device=device, **plan):
            if step.step == WARMUP - 1:
                started = time.perf_counter()

    memory = used(run)
    speed = batch * context * steps / (time.perf_counter() - started)
    weights = sum(p.numel() for p in model.parameters())
    flops = 6 * weights + 12 * shape["layers"] * shape["dim"] * context
    what = f"training, {weights / 1e6:.1f} million weights, {'compiled' if compile else 'eager'}"
    yield [what, f"{speed:,.0f} tokens/s", f"{speed * flops / peak:.0%} of the ceiling", f"{memory:,.0f}"]


def write(shape: dict[str, int], dtype: torch.dtype, device: str, count: int, rounds: int) -> Rows:
    prompt = torch.randint(shape["vocab_size"], (PROMPT,), device=device)
    pair = twins(shape, dtype, device)
    ours = pair["tfviz GPT"]
    runs: dict[str, Run] = {"tfviz GPT": lambda: list(generate.ids(ours, prompt, count, generate.GREEDY))}
    if "Hugging Face" in pair:
        runs["Hugging Face"] = peer(pair["Hugging Face"], prompt, count)
    times = race(runs, rounds)
    for name, run in runs.items():
        speed, faster = count / median(times[name]), 1 / ratio(times, name, list(runs)[-1])
        against = f"{faster:.2f} x as fast as {list(runs)[-1]}" if len(runs) > 1 else "–"
        yield [f"{name}, {str(dtype)[6:]}: generation", f"{speed:.0f} tokens/s", against, f"{used(run):,.0f}"]


def measurements(given: Namespace, peak: Callable[[], float]) -> dict[str, Callable[[], Rows]]:
    """Return what is measured, by name, the quickest first; `peak` is the ceiling in FLOPs a second."""
    quick, device, rounds = given.quick, given.device, given.rounds
    small = {**SMALL, "layers": 2, "vocab_size": 500, "context": 128} if quick else SMALL
    large, steps, count = (TINY, 3, 8) if quick else (LARGE, 40, 128)
    found: dict[str, Callable[[], Rows]] = {"ceiling": lambda: ceiling(256 if quick else 8192, device)}
    for dtype in (torch.bfloat16, torch.float32):
        found[f"capture {dtype}"] = lambda dtype=dtype: capture(small, dtype, device, rounds)
    found["training eager"] = lambda: train(large, 16, steps, False, device, peak())
    for dtype in (torch.bfloat16, torch.float32):
        found[f"generation {dtype}"] = lambda dtype=dtype: write(small, dtype, device, count, max(3, rounds // 2))
    found["training compiled"] = lambda: train(large, 16, steps, True, device, peak())
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--minutes", type=float, default=8.0, help="after which no measurement is begun")
    options.add_argument(
        "--out", type=Path, help="folder of gpu.json and gpu.md; with --quick, they are written only if it is given"
    )
    options.add_argument("--device", default="cuda")
    given = options.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu.py measures a GPU, and PyTorch sees none on this machine; --device cpu --quick rehearses it")
    settings = [given.quick, given.rounds, given.device, torch.__version__]
    settings.append(torch.cuda.get_device_name() if given.device == "cuda" else "cpu")
    out = given.out or (None if given.quick else RESULTS)
    done = Measurements(out and out / "gpu.json", settings, given.minutes)

    def peak() -> float:
        return float(done.rows("ceiling")[0][1].split()[0]) * 1e12

    for name, measure in measurements(given, peak).items():
        done.measure(name, measure)
        rows, notes = done.all_rows(), done.notes()
        report("gpu", "On a GPU", HEADER, rows, seeds=[SEED], quick=out is None, notes=notes, folder=out)


if __name__ == "__main__":
    main()
