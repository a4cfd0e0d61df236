"""What it takes to look at every head in a page: bytes, time until drawn, time to another head.

12 layers x 12 heads of causal scores, three times normal, softmaxed; one Chromium that reaches no network. tfviz: the
page that `view.heads(maps).save` writes. bertviz: the HTML that its own `head_view` and `model_view` return; scripts
that it fetches come from installed packages: mpld3 (d3 5.7.0, as it asks), XStatic-jQuery and nbclassic (require.js).
With the kernel behind: the widget's own module in a page, `view.live` at the other end of a binding of playwright,
which stands where Jupyter has its socket. All take turns in each round; medians.

Drawn: from the start of navigation until the frame that shows all of it is laid out and painted. tfviz: the last
thumbnail of the sheet has pixels; bertviz: its lines stand in the page. Another head: from the key to the end of the
first frame with other pixels, the wait for that frame included; the key comes at any moment between two frames. bertviz
draws all heads of a layer over one another, so there it is another layer.

    pip install anywidget bertviz mpld3 nbclassic playwright XStatic-jQuery
    python benchmarks/viewer.py [--quick] [--rounds N]
"""

import base64
import json
import re
import shutil
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import files, version
from pathlib import Path
from statistics import median, quantiles

import bertviz
import numpy
import torch
from common import MB, parser, report
from playwright.sync_api import BrowserType, Error, Page, Route, TimeoutError, sync_playwright

from tfviz import view
from tfviz.look import AttentionMaps
from tfviz.view.page.bundle import BUNDLES

SEED = 0
LAYERS = HEADS = 12
LIMIT = 120  # seconds that a page may take
CHANGES = {"tfviz": 30, "bertviz": 3}  # in a round
AIMS = {64: ("0.4", "0.3", "16"), 128: ("1.3", "0.4", "16"), 256: ("5", "0.8", "33"), 512: ("20", "2", "50")}
DRAWN = 256  # tokens up to which bertviz's page is made and opened
MODEL = 128  # tokens of the whole model view
WIDGET, SINGLE = 1024, 4096  # tokens with the kernel behind: of all heads, of one
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FETCHED = {  # part of the address -> package, file
    "require": ("nbclassic", "require.js"),
    "d3": ("mpld3", "d3.v5.min.js"),
    "jquery": ("XStatic-jQuery", "jquery.min.js"),
}

# Stands in each page before its own scripts. A look is cheap: one line of pixels across the middle of the canvas.
PROBE = """
const canvas = () => document.querySelector(".tfviz")?.shadowRoot?.querySelector(".stage-box canvas");
const pixels = (...box) => new Uint32Array(canvas().getContext("2d").getImageData(...box).data.buffer);
const line = () => pixels(0, canvas().height >> 1, canvas().width, 1).join();
const look = () => (canvas() ? line() : document.querySelector("#vis line"));
const shown = {
  sheet() { // a canvas is clear where nothing was put; words take 58 and 26 pixels, then come boxes with gaps of 4
    const side = canvas() && (parseFloat(canvas().style.height) - 26) / LAYERS - 4;
    const middle = (count) => (count - 1) * (side + 4) + side / 2;
    return Boolean(side) && pixels(58 + middle(HEADS), 26 + middle(LAYERS), 1, 1)[0] !== 0;
  },
  lines: () => document.querySelector("#vis line, #vis path") !== null,
  other: () => window.seen !== null && look() !== window.seen,
};

// When the first frame that passes has been laid out and painted: then comes the message that was sent before.
async function until(passes, limit = 120000) {
  const { port1, port2 } = new MessageChannel(), started = performance.now();
  let passed = false, time = started;
  while (!passed && time - started < limit) {
    time = await new Promise((done) => requestAnimationFrame(() => {
      passed = shown[passes]();
      port1.onmessage = () => done(performance.now());
      port2.postMessage(0);
    }));
  }
  port1.close();
  if (!passed) throw new Error(`saw nothing for ${limit} ms`);
  return time;
}

const press = (key) => canvas().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
const acts = {
  enter: () => press("Enter"),
  head: (i) => press(i % HEADS ? "]" : "PageDown"), // always one that was not opened before
  zoom: (i) => press(i <= 14 ? "+" : "-"),
  layer(i) {
    const list = document.querySelector("#layer");
    list.selectedIndex = i % LAYERS;
    list.dispatchEvent(new Event("change"));
  },
};

// Milliseconds of each of so many changes. A widget has not changed before its kernel has answered.
async function changes(act, count, asks = false) {
  const times = [];
  for (let i = 1; i <= count; i++) {
    await new Promise((done) => setTimeout(done, 20 + (7 * i) % 17));
    window.seen = asks ? null : look();
    const started = performance.now();
    acts[act](i);
    times.push(await until("other") - started);
  }
  return times;
}

function nodes(root = document) {
  let count = 0;
  for (const node of root.querySelectorAll("*")) count += 1 + (node.shadowRoot ? nodes(node.shadowRoot) : 0);
  return count;
}

// A widget with a model that has the verbs of Jupyter's.
async function widget(state, data) {
  const heard = new Map(), tell = (name, ...said) => (heard.get(name) ?? []).forEach((hear) => hear(...said));
  const values = { ...state, data: new DataView(Uint8Array.fromBase64(data).buffer) };
  const model = {
    get: (name) => values[name],
    set(name, value) { values[name] = value; tell(`change:${name}`); },
    save_changes() {},
    on: (name, hear) => heard.set(name, [...(heard.get(name) ?? []), hear]),
    off: (name, hear) => heard.set(name, heard.get(name).filter((other) => other !== hear)),
    async send(question) {
      const answer = Uint8Array.fromBase64(await window.ask(question));
      window.seen = look();
      tell("msg:custom", { id: question.id }, [new DataView(answer.buffer)]);
    },
  };
  window.seen = null;
  return window.entry.render({ model, el: document.querySelector("main") });
}

async function load(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  window.entry = (await import(address)).default;
}

async function again(state, data, times) {
  for (let i = 0; i < times; i++) {
    const close = await widget(state, data);
    await until("sheet");
    close();
  }
}

Object.assign(window, { until, changes, nodes, widget, load, again });
""".replace("LAYERS", str(LAYERS)).replace("HEADS", str(HEADS))


Found = dict[tuple | str, list]  # (what, whose, tokens), or what with the kernel behind -> what was measured


def scores(tokens: int, layers: int = LAYERS, heads: int = HEADS) -> AttentionMaps:
    made = torch.Generator().manual_seed(SEED)
    causal = torch.ones(tokens, tokens).tril().bool()
    weights = [
        (3 * torch.randn(heads, tokens, tokens, generator=made)).masked_fill_(~causal, -torch.inf).softmax(-1)
        for _ in range(layers)
    ]
    return AttentionMaps(weights, [f"w{i}" for i in range(tokens)], mask=causal)


def theirs(maps: AttentionMaps, kind: str) -> str:
    """A page of bertviz's own HTML."""
    make = bertviz.head_view if kind == "head" else bertviz.model_view
    body = make([layer[None] for layer in maps.layers], list(maps.query_tokens), html_action="return").data
    return f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"></head><body>{body}</body></html>\n'


def write(folder: Path, sizes: list[int], model: int, found: Found) -> dict[tuple, Path]:
    """All pages: (whose, tokens) -> file."""
    pages: dict[tuple, Path] = {}
    for tokens in sizes:
        maps = scores(tokens)
        pages["tfviz", tokens] = page = view.heads(maps).save(folder / f"tfviz{tokens}.html")
        if note := described(page)["note"]:
            found["left out"].append(f"{tokens} tokens: {note} Raised for this page.")
            view.heads(maps, max_bytes=1e9).save(page)
        found["error"].append(error(page, maps))
        if tokens <= DRAWN:
            pages["bertviz", tokens] = page = folder / f"bertviz{tokens}.html"
            page.write_text(theirs(maps, "head"), encoding="utf-8")
    pages["bertviz", "model"] = page = folder / "model.html"
    page.write_text(theirs(scores(model), "model"), encoding="utf-8")
    for key, page in pages.items():
        found["size", *key].append(page.stat().st_size / MB)
    return pages


def described(page: Path) -> dict:
    return json.loads(re.search(r'class="tfviz-document">(.*?)</script>', page.read_text(encoding="utf-8"))[1])


def error(page: Path, maps: AttentionMaps) -> float:
    """The largest error of a weight, read back out of the page."""
    data = base64.b64decode(re.search(r'class="tfviz-data">(.*?)</script>', page.read_text(encoding="utf-8"))[1])
    (part,) = described(page)["parts"]
    worst = 0.0
    for i, stored in enumerate(part["head_codes"]):
        layer, head = divmod(i, HEADS)
        packed = data[stored["offset"] : stored["offset"] + stored["length"]]
        codes = numpy.frombuffer(zlib.decompress(packed), numpy.uint8)
        weights = maps[layer, head][maps.allowed(layer, head)].numpy()
        worst = max(worst, float(abs((codes / 255) ** 2 - weights).max()))
    return worst


@cache
def fetched() -> dict[str, str]:
    """The scripts that bertviz fetches, by a part of their address."""
    return {
        name: next(path for path in files(package) or () if path.name == file).read_text("utf-8")
        for name, (package, file) in FETCHED.items()
    }


def serve(route: Route) -> None:
    """bertviz's scripts; nothing else of the network."""
    for name, text in fetched().items():
        if name in route.request.url:
            return route.fulfill(body=text, content_type="text/javascript")
    return route.abort()


@contextmanager
def tab(chromium: BrowserType) -> Iterator[Page]:
    """A page in a fresh Chromium, which owes nothing to the page before."""
    browser = chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(1000 * LIMIT)
    page.route(re.compile("^https?:"), serve)
    page.add_init_script(PROBE)
    try:
        yield page
    finally:
        browser.close()


def visit(chromium: BrowserType, path: Path, sign: str, act: str, count: int) -> tuple[float, list[float], int]:
    """Seconds until the page is drawn, milliseconds of changes, nodes."""
    with tab(chromium) as page:
        page.add_init_script(f'until("{sign}").then((time) => {{ window.drawn = time; }});')
        page.goto(path.as_uri(), wait_until="commit")
        drawn = page.wait_for_function("window.drawn", polling=100).json_value()
        nodes = page.evaluate("nodes()")
        if sign == "sheet":
            page.evaluate("changes('enter', 1)")
        return drawn / 1000, page.evaluate(f"changes('{act}', {count})"), nodes


class Kernel:
    """A page that shows a `Live`, and answers its questions."""

    def __init__(self, page: Page, empty: Path):
        self.page = page
        page.goto(empty.as_uri())
        page.expose_binding("ask", lambda _, question: base64.b64encode(self.live._head(question)).decode())
        page.evaluate("load", (BUNDLES / "maps-widget.js").read_text(encoding="utf-8"))

    def make(self, maps: AttentionMaps, **chosen) -> float:
        """Seconds that Python takes."""
        started = time.perf_counter()
        self.live = view.live(maps, **chosen)
        self.live._repr_mimebundle_()
        return time.perf_counter() - started

    @property
    def sent(self) -> list:
        state = {name: value for name, value in self.live.get_state().items() if name[0] != "_" and name != "data"}
        return [state, base64.b64encode(self.live.data).decode()]

    def show(self, sign: str) -> None:
        self.page.evaluate("async ([sent, sign]) => { await widget(...sent); await until(sign); }", [self.sent, sign])

    def heap(self, times: int) -> float:
        """MB of JavaScript after the view was opened and closed."""
        self.page.evaluate("(sent) => again(...sent)", [*self.sent, times])
        session = self.page.context.new_cdp_session(self.page)
        for _ in range(3):  # what is freed at once may have kept more, such as a canvas
            session.send("HeapProfiler.collectGarbage")
            self.page.wait_for_timeout(200)
        usage = session.send("Runtime.getHeapUsage")
        return (usage["usedSize"] + usage.get("backingStorageSize", 0)) / MB


def live(chromium: BrowserType, empty: Path, maps: list[AttentionMaps], found: Found) -> None:
    """One round with the kernel behind: of all heads, of one long one, opened and closed."""
    many, one, few = maps
    with tab(chromium) as page:
        kernel = Kernel(page, empty)
        started = time.perf_counter()
        found["python"].append(kernel.make(many))
        kernel.show("sheet")
        found["first"].append(time.perf_counter() - started)
        page.evaluate("changes('enter', 1)")  # the first head is sent in full
        found["another"] += page.evaluate("changes('head', 30, true)")
    with tab(chromium) as page:
        kernel = Kernel(page, empty)
        started = time.perf_counter()
        found["python one"].append(kernel.make(one, mode="head"))
        kernel.show("other")
        found["first one"].append(time.perf_counter() - started)
        found["zoom"] += page.evaluate("changes('zoom', 20)")
    with tab(chromium) as page:
        kernel = Kernel(page, empty)
        kernel.make(few, max_bytes=1e8)
        found["heap 10"].append(kernel.heap(10))
        found["heap 50"].append(kernel.heap(40))


def look(chromium: BrowserType, pages: dict[tuple, Path], found: Found) -> None:
    """One round of the pages. What bertviz cannot show once is not tried again."""
    for key, path in pages.items():
        whose, tokens = key
        if found["failed", *key]:
            continue
        sign, act = ("sheet", "head") if whose == "tfviz" else ("lines", "layer")
        try:
            drawn, times, nodes = visit(chromium, path, sign, act, 0 if tokens == "model" else CHANGES[whose])
        except Error as stopped:
            if whose == "tfviz":
                raise
            found["failed", *key].append(f"not in {LIMIT} s" if isinstance(stopped, TimeoutError) else "crashed")
            continue
        found["drawn", *key].append(drawn)
        found["change", *key] += times
        found["nodes", *key].append(nodes)


def rows(found: Found, sizes: list[int], model: int, many: int) -> list[list[str]]:
    def cell(what: str, whose: str, tokens: int | str, show: str = ".2f") -> str:
        values = found[what, whose, tokens]
        if found["failed", whose, tokens] and what != "size":
            return found["failed", whose, tokens][0]
        return (spread(values) if what == "change" else f"{median(values):{show}}") if values else "–"

    whose = ("bertviz", "tfviz")
    made = []
    for tokens in sizes:
        units = {"size": "the page, MB", "drawn": "drawn, s", "change": "another head, ms"}
        for aim, (what, said) in zip(AIMS[tokens], units.items(), strict=True):
            made.append([f"{tokens} tokens: {said}", aim, *(cell(what, who, tokens) for who in whose)])
    all_heads = (("bertviz", "model"), ("tfviz", model))
    kernel = {  # what -> aim, numbers
        f"{many:,} tokens: first picture, s": ("1", f"{median(found['first']):.2f}"),
        f"{many:,} tokens: another head, ms": ("100", spread(found["another"])),
        f"{SINGLE:,} tokens, one head: all of it, s": ("–", f"{median(found['first one']):.2f}"),
        f"{SINGLE:,} tokens, one head: a step of zoom, ms": ("–", spread(found["zoom"])),
    }
    heap = ", ".join(f"{median(found[f'heap {times}']):.2f}" for times in (10, 50))
    return [
        *made,
        [f"whole model, {model} tokens: nodes", "500", *(cell("nodes", *key, ",.0f") for key in all_heads)],
        [f"whole model, {model} tokens: drawn, s", "1", *(cell("drawn", *key) for key in all_heads)],
        *([f"kernel behind, {what}", aim, "–", measured] for what, (aim, measured) in kernel.items()),
        ["largest error of a weight", "0.004", "–", f"{max(found['error']):.4f}"],
        ["memory of the page after a view was opened and closed 10, 50 times, MB", "–", "–", heap],
    ]


def spread(times: list[float]) -> str:
    """The median, and in brackets the 90th percentile."""
    return f"{median(times):.0f} ({quantiles(times, n=10, method='inclusive')[-1]:.0f})"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    fetched()  # or say at once which package is missing
    rounds = 1 if given.quick else given.rounds
    sizes, model, many = ([64, 128], 64, 512) if given.quick else (list(AIMS), MODEL, WIDGET)
    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        pages = write(folder, sizes, model, found)
        (empty := folder / "empty.html").write_text(
            "<!doctype html><meta charset=utf-8><main></main>", encoding="utf-8"
        )
        maps = [scores(many), scores(SINGLE, 1, 1), scores(model)]
        with tab(playwright.chromium) as page:
            browser = f"Chromium {page.context.browser.version}"
        for _ in range(rounds):
            look(playwright.chromium, pages, found)
            live(playwright.chromium, empty, maps, found)
    notes = [
        f"{rounds} rounds; of changes the median, in brackets the 90th percentile; sizes of whole files. "
        f"bertviz: pages of up to {DRAWN} tokens. Of the first pictures Python takes {median(found['python']):.2f} s "
        f"(all heads) and {median(found['python one']):.2f} s (one). Chromium counts among the other processes below.",
        f"The budget of a page: {' '.join(found['left out']) or 'by default it holds all heads of each.'}",
        f"{browser}, bertviz {version('bertviz')}, playwright {version('playwright')}.",
    ]
    header = ["what", "aim", "bertviz", "tfviz"]
    table = rows(found, sizes, model, many)
    report("viewer", "Looking at heads", header, table, seeds=[SEED], quick=given.quick, notes=notes)


if __name__ == "__main__":
    main()
