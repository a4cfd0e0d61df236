"""What a reader waits for at `view.interact` and `view.translate`, in a Chromium without a network.

A frame: a slider is moved, and the function is computed and drawn anew: self-attention of six words, 6 x 6, three
pictures. A word: Step is pressed in a translator of 2.1 million parameters, until the word, what could stand there, the
tree of the search and all heads are drawn; greedy, and a beam of four.

    python benchmarks/instruments.py [--quick] [--rounds N]
"""

import tempfile
from collections import defaultdict
from pathlib import Path

import torch
from common import parser, report
from playwright.sync_api import Page, sync_playwright
from studio import ARGUMENTS, CHROMIUM, SEED, stated

from tfviz import view
from tfviz.models import Transformer
from tfviz.text import train_whole_words

WORDS = ["the", "cat", "sat", "on", "a", "mat"]
PROBE = """
const root = () => document.querySelector(".tfviz")?.shadowRoot;
const pause = () => new Promise((done) => setTimeout(done, 40));
// Milliseconds from what is done until nobody is busy any more and the next frame is there.
async function until(act, busy) {
  const started = performance.now();
  act();
  do await new Promise((done) => setTimeout(done)); while (busy());
  const drawn = performance.now() - started;
  await new Promise(requestAnimationFrame);
  return drawn;
}
async function frames(count) {
  const times = [], slider = root().querySelector("input[type=range]");
  const busy = () => root().querySelector(".results").ariaBusy !== "false";
  for (let i = 0; i < count; i++) {
    await pause();
    const move = () => slider.dispatchEvent(new Event("input"));
    slider.value = 0.5 + (i % 9) / 2;
    times.push(await until(move, busy));
  }
  return times;
}
async function words(width, count) {
  const slider = root().querySelector("input[type=range]"), studio = root().querySelector(".studio");
  const busy = () => studio.hasAttribute("aria-busy"), nodes = () => root().querySelectorAll(".node").length;
  const press = (name) => [...root().querySelectorAll(".row button")].find((one) => one.textContent === name).click();
  const calm = async () => { for (let rest = 0; rest < 9; rest = busy() ? 0 : rest + 1) await pause(); };
  const sentence = root().querySelector("textarea");
  slider.value = width;
  slider.dispatchEvent(new Event("input"));
  const times = [];
  for (let i = 0; i < count; i++) {
    if (i % 10 === 0) { // another sentence, of which nothing was searched yet
      press("From the start");
      await calm();
      sentence.value = Array.from({ length: 12 }, (_, word) => `word${word + 12 * (width + i)}`).join(" ");
      sentence.dispatchEvent(new Event("input"));
      await calm();
    }
    await pause();
    const before = nodes();
    times.push(await until(() => press("Step"), () => busy() || nodes() === before));
  }
  return times;
}
"""


def attention() -> view.View:
    def attend(sharpness: torch.Tensor, words: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = sharpness * words @ words.T
        shares = scores.softmax(-1)
        return {"scores": scores, "shares": shares, "mixture": shares @ words}

    torch.manual_seed(SEED)
    points = {word: tuple(point) for word, point in zip(WORDS, torch.randn(6, 2).tolist())}
    return view.interact(attend, sharpness=(0.1, 5.0), words=view.controls.points(points))


def translator() -> tuple[view.View, int]:
    torch.manual_seed(SEED)
    tokenizer = train_whole_words([" ".join(f"word{i}" for i in range(5000))])
    model = Transformer(len(tokenizer), context=48, layers=3, heads=4, dim=128)
    count = sum(one.numel() for one in model.parameters())
    sentence = " ".join(f"word{i}" for i in range(12))
    return view.translate(model, tokenizer, sentence, max_new_tokens=40), count


def opened(page: Page, made: view.View, folder: Path) -> None:
    page.goto(made.save(folder / "view.html").as_uri())
    page.wait_for_function("document.querySelector('.tfviz')?.shadowRoot?.querySelector('canvas')?.height > 20")
    page.wait_for_timeout(1500)
    page.add_script_tag(content=PROBE)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    rounds = 1 if given.quick else given.rounds
    found: dict[str, list[float]] = defaultdict(list)
    knob, (studio, size) = attention(), translator()
    with tempfile.TemporaryDirectory() as kept, sync_playwright() as playwright:
        for _ in range(rounds):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_context(viewport={"width": 1200, "height": 1000}, offline=True).new_page()
            opened(page, knob, Path(kept))
            found["frame"] += page.evaluate("frames(40)")[5:]
            opened(page, studio, Path(kept))
            for width in (1, 4):
                found[f"word {width}"] += page.evaluate(f"words({width}, 20)")[3:]
            version = browser.version
            browser.close()
    rows = [
        ["interact: a slider moved, 6 x 6 attention computed and drawn", "8 ms", stated(found["frame"], "ms")],
        ["translate: a word of greedy", "30 ms", stated(found["word 1"], "ms")],
        ["translate: a word of a beam of four", "100 ms", stated(found["word 4"], "ms")],
    ]
    notes = [
        f"Chromium {version}, which counts among the other processes below. The translator has {size:,} parameters."
    ]
    header = ["what", "aim: at most", "median (nine of ten)"]
    report("instruments", "Instruments in a page", header, rows, seeds=[SEED], quick=given.quick, notes=notes)


if __name__ == "__main__":
    main()
