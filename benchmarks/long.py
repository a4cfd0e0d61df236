"""What a long text takes: a capture that keeps what weights are made of, and the heads that are looked at.

Capture: GPT-2 small's shape (width 768, 12 heads, 4 layers, random weights, no logits) reads 32,768 tokens in float32
under `torch.inference_mode`, with and without `look.capture(lazy=True)`, in turns; the ratio in each round, and their
median. Looking: one head of it whole in blocks of 32 x 32 cells, the first time; a step of zoom, 4,096 x 4,096 cells in
blocks of 4, 2,048 x 2,048 in blocks of 2, 1,024 x 1,024 as they are; one exact row. Medians.

Page: `view.heads` of 12 layers x 12 heads x 2,048 tokens of that shape, causal, with a budget of 45 MB; bytes, what the
page says of its error, and in a Chromium that reaches no network: from the start of navigation until all thumbnails of
the sheet are painted, and from the key to the first frame with another head computed in full.

    python benchmarks/long.py [--quick] [--rounds N]
"""

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from common import MB, clock, parser, report
from playwright.sync_api import sync_playwright
from studio import ARGUMENTS, CHROMIUM
from torch import nn
from ways import SEED

from tfviz import look, view
from tfviz.look import AttentionMaps
from tfviz.look.attention_call import AttentionCall
from tfviz.look.lazy import LazyAttention

BUDGET = 45e6
HEADS, DIM = 12, 64
AT = """async () => {
  const root = () => document.querySelector(".tfviz")?.shadowRoot;
  const canvas = () => root()?.querySelector(".stage-box canvas");
  const last = () => {
    const side = (parseFloat(canvas().style.height) - 26) / %d - 4;
    const at = [58 + 11 * (side + 4) + side / 2, 26 + (%d - 1) * (side + 4) + side / 2].map(Math.round);
    return side > 0 && canvas().getContext("2d").getImageData(...at, 1, 1).data[3] > 0;
  };
  for (;;) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    if (canvas() && last()) return performance.now();
  }
}"""
KEY = """async (key) => {
  const root = document.querySelector(".tfviz").shadowRoot;
  const status = () => root.querySelector(".status").textContent;
  const canvas = root.querySelector(".stage-box canvas");
  const began = performance.now();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
  let loading = false;
  for (;;) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    if (status().startsWith("loading")) loading = true;
    else if (loading) return performance.now() - began;
  }
}"""


def model(layers: int, tokens: int) -> nn.Module:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(SEED)
    shape = {"n_layer": layers, "n_head": HEADS, "n_embd": HEADS * DIM, "n_positions": tokens}
    return GPT2Model(GPT2Config(**shape, use_cache=False, attn_implementation="sdpa")).eval()


def captured(tokens: int, layers: int, rounds: int) -> tuple[AttentionMaps, list[list[str]]]:
    made = model(layers, tokens)
    ids = torch.randint(50257, (1, tokens), generator=torch.Generator().manual_seed(SEED))
    times: dict[str, list[float]] = {"plain": [], "lazy": []}
    with torch.inference_mode():
        seen_by(made, ids, lazy=True)  # to warm up: the first of so many tokens is slower
        for turn in range(rounds):
            for name in ("plain", "lazy") if turn % 2 else ("lazy", "plain"):
                times[name].append(clock(lambda name=name: seen_by(made, ids, name == "lazy")))
        seen = seen_by(made, ids, lazy=True)
    ratio = median(lazy / plain for lazy, plain in zip(times["lazy"], times["plain"], strict=True))
    row = [
        f"capture, {layers} layers x {HEADS} heads x {tokens:,} tokens, lazy, over the plain forward",
        "1.03",
        f"{ratio:.3f}",
    ]
    return AttentionMaps.from_capture(seen), [[*row, f"{median(times['plain']):.1f} s plain"]]


def seen_by(made: nn.Module, ids: torch.Tensor, lazy: bool) -> look.Capture | None:
    if not lazy:
        made(ids)
        return None
    with look.capture(made, lazy=True) as seen:
        made(ids)
    return seen


def looked(maps: AttentionMaps, rounds: int) -> list[list[str]]:
    tokens = maps.shape[3]
    middle = tokens * 5 // 8
    opened = [clock(lambda head=head: maps.max_pool(0, head, pool_size=32)) for head in range(min(rounds + 1, HEADS))][
        1:
    ]

    def step(side: int) -> Callable[[], object]:
        rows, keys = slice(middle, middle + side), slice(middle - side, middle)
        return lambda: maps.max_pool(0, 1, rows, keys, max(1, side // 1024))

    zooms = {side: median(clock(step(side)) for _ in range(5 * rounds)) for side in (4096, 2048, 1024)}
    row = median(clock(lambda: maps[0, 1, tokens - 2]) for _ in range(5 * rounds))
    shown = ", ".join(f"{seconds * 1e3:.0f}" for seconds in zooms.values())
    return [
        [f"one head of {tokens:,} x {tokens:,} whole", "3 s", f"{median(opened):.1f} s", ""],
        ["a step of zoom: 4,096, 2,048, 1,024 cells wide", "80 ms", f"{shown} ms", ""],
        ["one exact row", "20 ms", f"{row * 1e3:.1f} ms", ""],
    ]


def page(tokens: int, layers: int, rounds: int) -> list[list[str]]:
    draw = torch.Generator().manual_seed(SEED)
    made = []
    for _ in range(layers):
        query, key = (1.5 * torch.randn(1, HEADS, tokens, DIM, generator=draw) for _ in range(2))
        made.append(LazyAttention(AttentionCall.from_arguments(query, key, key, None, None, causal=True)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "heads.html"
        started = time.perf_counter()
        shown = view.heads(AttentionMaps(made), max_bytes=BUDGET)
        shown.save(path)
        saved, size = time.perf_counter() - started, path.stat().st_size / MB
        drawn, changed = [], []
        for _ in range(rounds):
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            tab = chromium.new_page()
            tab.goto(path.as_uri(), wait_until="commit")
            drawn.append(tab.evaluate(AT % (layers, layers)))
            tab.evaluate("() => document.querySelector('.tfviz').shadowRoot.querySelector('.stage-box canvas').focus()")
            changed += [tab.evaluate(KEY, key) for key in ("Enter", "]", "]", "]")][1:]
            chromium.close()
    error = re.search(r"off by more than ([\d.e-]*\d)", shown.document["note"])
    form = re.search(r"in (.*?);", shown.document["note"])
    what = f"page of {layers} x {HEADS} x {tokens:,} tokens, all heads"
    said = (
        f"in {form[1] if form else '?'}: a weight is off by at most {error[1] if error else '?'}; made in {saved:.0f} s"
    )
    return [
        [what, "45 MB", f"{size:.1f} MB", said],
        ["drawn", "2 s", f"{median(drawn) / 1e3:.1f} s", ""],
        ["another head", "400 ms", f"{median(changed):.0f} ms", ""],
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    tokens, layers, paged = (1024, 2, 512) if given.quick else (32_768, 4, 2048)
    maps, rows = captured(tokens, layers, given.rounds)
    rows += looked(maps, given.rounds)
    del maps
    rows += page(paged, 2 if given.quick else 12, given.rounds)
    report("long", "Long texts", ["", "at most", "measured", ""], rows, seeds=[SEED], quick=given.quick)


if __name__ == "__main__":
    main()
