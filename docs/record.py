"""Record the README's moving picture, light and dark: a text typed and written on, letters pointed at, the head found
that looks one letter back, all heads measured, that one switched off; the line of top-k dragged.

The GPT of `tfviz demo` is in its page, and a Chromium with no network is filmed by screenshots, one for each thing
that is done.

    python docs/record.py [--out docs]
"""

import argparse
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tfviz import view
from tfviz.lessons import demo

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZE = {"width": 1120, "height": 776}
PROMPT = "KING RICHARD:\nMy lord, "
LARGEST = 1.43e6  # bytes
DRAWN = """async () => { const { shadowRoot } = document.querySelector('.tfviz');
    for (let calm = 0; calm < 3; ) { await new Promise(requestAnimationFrame);
        const moves = shadowRoot.getAnimations().some(one => one.playState === 'running');
        calm = moves || shadowRoot.querySelector('.studio')?.hasAttribute('aria-busy') ? 0 : calm + 1; } }"""


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

    def press(name: str, milliseconds: int) -> None:
        page.get_by_role("button", name=name, exact=True).click()
        film.shot(milliseconds)

    first, rest = PROMPT.splitlines(keepends=True)
    page.locator(".editor").fill(first)
    page.locator(".editor").click()
    page.keyboard.press("Control+End")
    film.shot(900)
    for letter in rest:
        page.keyboard.type(letter)
        film.shot(70)
    film.shot(700)
    for _ in range(24):
        press("One letter", 80)
    film.shot(900)
    tokens = page.locator(".token")
    for at in (-2, -8, -15):  # what the chosen head looks at from there
        tokens.nth(tokens.count() + at).hover()
        film.shot(700)
    page.mouse.move(5, 5)
    page.get_by_role("button", name="Find the head that looks one letter back").click()
    while page.locator(".examples [aria-busy]").count():
        film.shot(100)
    film.shot(2200)
    page.get_by_role("button", name="Which heads matter?").click()
    page.locator(".bars-legend", has_text="Bars").wait_for()
    film.shot(2600)
    press("Which heads matter?", 300)  # without the bars
    press("… and switch it off", 2600)
    for _ in range(8):
        press("One letter", 90)
    film.shot(1200)
    press("All on", 1200)
    line = page.locator(".threshold").bounding_box()
    assert line
    page.mouse.move(line["x"] + 40, line["y"] + 4)
    page.mouse.down()
    for step in range(1, 7):
        page.mouse.move(line["x"] + 40, line["y"] - 26 * step)
        film.shot(140)
    page.mouse.up()
    page.mouse.move(5, 5)
    film.shot(1800)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="a folder")
    given = parser.parse_args()
    model, letters = demo.load()
    studio = view.write(model, letters, PROMPT, title=demo.TITLE, temperature=0.7, seed=3)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = studio.save(Path(folder) / "write.html")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for scheme, name in (("light", "write.webp"), ("dark", "write-dark.webp")):
            context = browser.new_context(color_scheme=scheme, viewport=SIZE)
            context.set_offline(True)
            page = context.new_page()
            page.goto(path.as_uri())
            page.locator(".token").first.wait_for()
            film = Film(page)
            play(film)
            film.save(given.out / name)
        browser.close()


if __name__ == "__main__":
    main()
