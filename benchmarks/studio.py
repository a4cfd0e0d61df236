"""What a model that travels in its page takes, in Chromium: `view.write` of the lessons' GPT (4 x 128, 96 letters), and
of blocks of GPT-2 small's shape (12 layers, 12 heads, 768 wide; 64 letters) as int8.

One Chromium that reaches no network, opened anew for each page. From an event to the end of the first frame in which
all that follows from it is drawn (text, bars, cost, all heads), the wait for that frame included; medians, in brackets
the 90th percentile. A key: the first of 96 letters is changed, so that all is read again. A letter written: keys and
values of the text before it are kept; by the engine alone, and with everything drawn.

    python benchmarks/studio.py [--quick] [--rounds N]
"""

import shutil
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import torch
from common import MB, parser, report
from playwright.sync_api import BrowserType, sync_playwright

from tfviz import view
from tfviz.models import GPT
from tfviz.text import CharacterTokenizer

SEED = 0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LETTERS = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # the 65 of tiny Shakespeare
PROMPT = "But soft, what light through yonder window breaks? It is the east, and Juliet is the sun. Arise"
PROBE = """
window.engine = []; // milliseconds of each letter in the engine
window.Worker = class extends window.Worker {
  constructor(...given) {
    super(...given);
    this.asked = new Map();
    this.addEventListener("message", ({ data: { id } }) => {
      if (this.asked.has(id)) window.engine.push(performance.now() - this.asked.get(id));
    });
  }
  postMessage(message, ...more) {
    if (message.run === "step") this.asked.set(message.id, performance.now());
    super.postMessage(message, ...more);
  }
};
const root = () => document.querySelector(".tfviz")?.shadowRoot;
const strip = () => // a line of pixels across the middle of each head
  [...root().querySelectorAll(".head canvas")].map((head) => {
    const line = head.getContext("2d").getImageData(0, head.height >> 1, head.width, 1);
    return new Uint32Array(line.data.buffer).join();
  }).join();
const one = (selector) => root()?.querySelector(selector);
const look = () => [one(".editor").textContent, one(".bar-list").textContent + strip()]; // both change in one frame
const drawn = () => Boolean(one(".head") && one(".bar-row") && /[1-9]/.test(strip()));

// When the first frame that passes has been laid out and painted.
async function until(passes, limit = 60000) {
  const { port1, port2 } = new MessageChannel(), started = performance.now();
  let passed = false, time = started;
  while (!passed && time - started < limit)
    time = await new Promise((done) => requestAnimationFrame(() => {
      passed = passes();
      port1.onmessage = () => done(performance.now());
      port2.postMessage(0);
    }));
  port1.close();
  if (!passed) throw new Error(`saw nothing for ${limit} ms`);
  return time;
}

async function times(act, count) {
  const found = [];
  for (let i = 0; i < count; i++) {
    await new Promise((done) => setTimeout(done, 20 + (7 * i) % 17));
    const before = look(), started = performance.now();
    act(i);
    found.push((await until(() => look().every((now, part) => now !== before[part]))) - started);
  }
  return found;
}

const key = (i) => {
  one(".token").firstChild.data = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 26];
  one(".editor").dispatchEvent(new Event("input"));
};
const write = () => root().querySelectorAll(".row button")[1].click();
Object.assign(window, { until, times, drawn, key, write, look });
"""


@dataclass(frozen=True)
class Case:
    """A model in a page, and how often it is asked."""

    layers: int
    heads: int
    dim: int
    context: int
    dtype: str
    count: int

    def save(self, path: Path, prompt: str, dtype: str | None = None) -> Path:
        torch.manual_seed(SEED)
        model = GPT(len(LETTERS), context=self.context, layers=self.layers, heads=self.heads, dim=self.dim)
        page = view.write(model, CharacterTokenizer(LETTERS), prompt, dtype=dtype or self.dtype, max_bytes=None)
        return page.save(path)


SMALL = Case(4, 4, 128, 96, "float16", 25)
LARGE = Case(12, 12, 768, 64, "int8", 8)


def measure(browser_type: BrowserType, folder: Path, case: Case, rounds: int, found: dict[str, list[float]]) -> str:
    """Measure each page in a browser of its own, `rounds` times; return the browser's name."""
    name = ""
    full = PROMPT.ljust(case.context, ".")[: case.context]
    for _ in range(rounds):
        for what, prompt in (("key", full), ("letter", PROMPT[:40])):
            started = time.perf_counter()
            path = case.save(folder / f"{what}.html", prompt)
            found["export"].append(time.perf_counter() - started)
            found["bytes"].append(path.stat().st_size)
            browser = browser_type.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            name = f"Chromium {browser.version}"
            context = browser.new_context(viewport={"width": 1200, "height": 1000})
            context.set_offline(True)
            page = context.new_page()
            page.set_default_timeout(300_000)
            page.add_init_script(PROBE)
            page.goto(path.as_uri(), wait_until="commit")
            found["opened"].append(page.evaluate("until(drawn)"))
            found[what] += page.evaluate(f"times({'key' if what == 'key' else 'write'}, {case.count})")[3:]
            if what == "letter":
                found["engine"] += page.evaluate("engine")[3:]
            browser.close()
    return name


def stated(values: list[float], unit: str, scale: float = 1.0) -> str:
    late = f" ({quantiles(values, n=10)[-1] * scale:.3g})" if len(values) > 9 else ""
    return f"{median(values) * scale:.3g}{late} {unit}"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    small: dict[str, list[float]] = defaultdict(list)
    large: dict[str, list[float]] = defaultdict(list)
    rounds = 1 if given.quick else given.rounds
    with tempfile.TemporaryDirectory() as kept, sync_playwright() as playwright:
        folder = Path(kept)
        browser = measure(playwright.chromium, folder, SMALL, rounds, small)
        int8 = SMALL.save(folder / "size.html", PROMPT, "int8").stat().st_size
        measure(playwright.chromium, folder, LARGE, min(rounds, 3), large)
    rows = [
        ["key pressed to text, bars and all heads redrawn, 96 letters", "40 ms", stated(small["key"], "ms")],
        ["a letter written, keys and values kept: the engine", "10 ms", stated(small["engine"], "ms")],
        ["the same, with text, bars and all heads redrawn", "", stated(small["letter"], "ms")],
        ["page, float16", "2.6 MB", stated(small["bytes"], "MB", 1 / MB)],
        ["page, int8", "1.5 MB", f"{int8 / MB:.2f} MB"],
        ["opened, until all is drawn", "0.8 s", stated(small["opened"], "s", 1e-3)],
        ["`view.write`, both programs and the page", "5 s", stated(small["export"], "s")],
        ["**12 x 12 heads, 768 wide**: page, int8", "", stated(large["bytes"], "MB", 1 / MB)],
        ["`view.write`", "", stated(large["export"], "s")],
        ["opened, until all is drawn", "4 s", stated(large["opened"], "s", 1e-3)],
        ["a letter written: the engine", "150 ms", stated(large["engine"], "ms")],
        ["the same, with text, bars and all heads redrawn", "", stated(large["letter"], "ms")],
        ["key pressed to all redrawn, 64 letters", "1 s", stated(large["key"], "s", 1e-3)],
    ]
    notes = [
        f"{browser}, which counts among the other processes below. Weights are random; the letters are the 65 of tiny "
        "Shakespeare."
    ]
    header = ["what", "aim: at most", "measured"]
    report("studio", "A model that computes in its page", header, rows, seeds=[SEED], quick=given.quick, notes=notes)


if __name__ == "__main__":
    main()
