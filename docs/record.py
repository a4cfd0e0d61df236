"""Record the README's moving picture, light and dark: a prompt typed, letters written and pointed at,
heads switched off.

The GPT of `tfviz demo` is in its page, and a Chromium with no network is filmed by screenshots, one for each thing
that is done.

    python docs/record.py [--out docs]
"""

import argparse
import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tfviz import view
from tfviz.suite import demo

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZE = {"width": 900, "height": 880}
PROMPT = "KING RICHARD:\nMy lord, "
LARGEST = 1.5e6  # bytes
DRAWN = """async () => { const { shadowRoot } = document.querySelector('.tfviz');
    for (let calm = 0; calm < 3; ) { await new Promise(requestAnimationFrame);
        calm = shadowRoot.querySelector('.studio')?.hasAttribute('aria-busy') ? 0 : calm + 1; } }"""


class Film:
    """Screenshots of a page, and how long each is seen, in milliseconds."""

    def __init__(self, page: Page):
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def shot(self, milliseconds: int) -> None:
        self.page.evaluate(DRAWN)
        frame = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        if self.frames and frame.tobytes() == self.frames[-1].tobytes():
            self.times[-1] += milliseconds
            return
        self.frames.append(frame)
        self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        """The best quality that fits."""
        for quality in (90, 80, 70, 60, 50, 40, 30):
            made = io.BytesIO()
            first, *rest = self.frames
            first.save(
                made, "WEBP", save_all=True, append_images=rest, duration=self.times, loop=0, quality=quality, method=4
            )
            if made.tell() <= LARGEST:
                break
        else:
            raise SystemExit(f"{made.tell():,} bytes, and {LARGEST:,.0f} are the most: record less")
        path.write_bytes(made.getvalue())
        seen = f"{len(self.frames)} frames, {sum(self.times) / 1000:.1f} s"
        print(f"{path}: {made.tell():,} bytes, {seen}, quality {quality}")


def play(film: Film) -> None:
    page = film.page
    button: Callable[[str], None] = lambda name: page.get_by_role("button", name=name, exact=True).click()  # noqa: E731
    page.locator("textarea").fill("")
    page.locator("textarea").press_sequentially(PROMPT[:1])
    film.shot(600)
    for letter in PROMPT[1:]:
        page.keyboard.type(letter) if letter != "\n" else page.keyboard.press("Enter")
        film.shot(70)
    film.shot(700)
    for _ in range(40):
        button("Step")
        film.shot(80)
    film.shot(1200)
    page.get_by_text("Words", exact=True).click()  # the text, shaded by what the letter pointed at looks at
    film.shot(1000)
    words = page.locator(".sentence .word")
    for at in (-2, -6, -12, -20):
        words.nth(words.count() + at).click()
        film.shot(900)
    page.get_by_text("All heads", exact=True).click()
    film.shot(600)
    for name in ("layer 0, head 0: off", "layer 0, head 1: off", "layer 0, head 2: off"):
        button(name)
        film.shot(1100)
    for _ in range(12):
        button("Step")
        film.shot(90)
    film.shot(1500)
    button("all on")
    film.shot(1800)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="a folder")
    given = parser.parse_args()
    model, letters = demo.load()
    studio = view.write(model, letters, PROMPT, title="A small GPT, in this page", temperature=0.7, seed=3)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = studio.save(Path(folder) / "write.html")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for scheme, name in (("light", "write.webp"), ("dark", "write-dark.webp")):
            context = browser.new_context(color_scheme=scheme, viewport=SIZE)
            context.set_offline(True)
            page = context.new_page()
            page.goto(path.as_uri())
            page.locator(".written .word").first.wait_for()
            film = Film(page)
            play(film)
            film.save(given.out / name)
        browser.close()


if __name__ == "__main__":
    main()
