"""The page's engine beside onnxruntime-web, both in one Chromium, in turns, on one thread: the lessons' GPT (0.8
million parameters), 96 letters read, and one letter more with keys and values kept.

    pip install -c constraints.txt onnx onnxscript
    python benchmarks/engine.py [--quick] [--rounds N] [--peer FOLDER]

onnxruntime-web comes from npm, unless FOLDER holds its `dist`. Weights are float32 on both sides.
"""

import base64
import subprocess
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

import torch
from common import MB, parser, report
from playwright.sync_api import sync_playwright
from studio import ARGUMENTS, CHROMIUM, PROMPT, SEED, made
from torch import nn

from tfviz.models import GPT
from tfviz.portable.language_model import ExportCache, export_language_model
from tfviz.portable.program import serialize_programs
from tfviz.view.page.bundle import BUNDLES

VERSION = "1.30.0"
RUNTIME = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
PAGE = """<!doctype html><meta charset="utf-8">
<script src="peer/ort.wasm.min.js"></script><script src="engine.js"></script>
<script>
const ids = Array.from({ length: 96 }, (_, i) => i % 65), carry = ["keys", "values"];
async function ours(programs, text) {
  const { Interpreter, MatmulKernel } = ENGINE();
  const interpreter = new Interpreter(await MatmulKernel.make());
  interpreter.load(programs, Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  const run = (name, data, more) =>
    interpreter.run(name, { ids: { data, shape: [1, data.length] } }, { carry, ...more });
  window.own = {
    read: () => run("read", ids).outputs.logits.data,
    seen: () => run("read", ids, { watch: true }).outputs.logits.data,
    before: () => run("read", ids.slice(0, 95)),
    step: () => run("step", ids.slice(95)).outputs.logits.data,
  };
}
async function peers() {
  Object.assign(ort.env.wasm, { numThreads: 1, wasmPaths: new URL("peer/", location).href });
  const session = (name) => ort.InferenceSession.create(`${name}.onnx`);
  const [read, step] = [await session("read"), await session("step")];
  const run = async (one, data, past = []) => {
    const words = new ort.Tensor("int64", BigInt64Array.from(data, BigInt), [1, data.length]);
    const given = Object.fromEntries(one.inputNames.map((name, i) => [name, [words, ...past][i]]));
    const made = await one.run(given);
    return one.outputNames.map((name) => made[name]);
  };
  let past = [];
  window.peer = {
    read: async () => (await run(read, ids))[0].data,
    before: async () => (past = (await run(read, ids.slice(0, 95))).slice(1)),
    step: async () => (await run(step, ids.slice(95), past))[0].data,
  };
}
// Milliseconds of each run in each round, in turns.
async function race(rounds) {
  const times = { own: [], seen: [], peer: [], "own step": [], "peer step": [] };
  const timed = async (name, run) => {
    const started = performance.now();
    await run();
    times[name].push(performance.now() - started);
  };
  for (let round = 0; round < rounds; round++) {
    await timed("own", own.read);
    await timed("peer", peer.read);
    await timed("seen", own.seen);
    own.before();
    await timed("own step", own.step);
    await peer.before();
    await timed("peer step", peer.step);
  }
  return times;
}
async function apart() {
  const far = (a, b) => Math.max(...a.map((x, i) => Math.abs(x - b[i])));
  const whole = far(own.read(), await peer.read());
  own.before();
  await peer.before();
  return Math.max(whole, far(own.step(), await peer.step()));
}
</script>"""


class Read(nn.Module):
    """Logits, keys and values, as ONNX takes them."""

    def __init__(self, model: GPT):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> list[torch.Tensor]:
        return self.given(ids, [ExportCache() for _ in self.model.blocks])

    def given(self, ids: torch.Tensor, kept: list[ExportCache]) -> list[torch.Tensor]:
        logits = self.model(ids, kept)
        return [logits, *(one.keys for one in kept), *(one.values for one in kept)]


class Step(Read):
    """The same for one letter more."""

    def forward(self, ids: torch.Tensor, past: list[torch.Tensor]) -> list[torch.Tensor]:
        count = len(self.model.blocks)
        return self.given(ids, [ExportCache(*pair) for pair in zip(past[:count], past[count:])])


def to_onnx(model: GPT, folder: Path) -> None:
    ids = torch.arange(96)[None] % 65
    words, before = torch.export.Dim("words", min=2, max=96), torch.export.Dim("before", min=2, max=95)
    how = {"dynamo": True, "external_data": False, "verbose": False}
    torch.onnx.export(Read(model), (ids,), folder / "read.onnx", dynamic_shapes=({1: words},), **how)
    with torch.no_grad():
        past = Read(model)(ids[:, :40])[1:]
    shapes = (None, [{2: before} for _ in past])
    torch.onnx.export(Step(model), (ids[:, :1], past), folder / "step.onnx", dynamic_shapes=shapes, **how)


def installed(folder: Path) -> Path:
    """onnxruntime-web's own build."""
    command = ["npm", "install", "--prefix", folder, f"onnxruntime-web@{VERSION}"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "node_modules" / "onnxruntime-web" / "dist"


def measure(folder: Path, rounds: int, programs: dict, data: bytes) -> tuple[dict[str, list[float]], float, str]:
    handler = partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/page.html")
        page.evaluate("([programs, text]) => ours(programs, text)", [programs, base64.b64encode(data).decode()])
        page.evaluate("peers()")
        page.evaluate("race(5)")
        times, apart, said = page.evaluate(f"race({rounds})"), page.evaluate("apart()"), browser.version
        browser.close()
    server.shutdown()
    return times, apart, said


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=60)
    options.add_argument("--peer", type=Path, help="a folder with onnxruntime-web's dist")
    given = options.parse_args()
    torch.manual_seed(SEED)
    model = GPT(65, context=96, layers=4, heads=4, dim=128).eval()
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        (folder / "peer").symlink_to((given.peer or installed(folder)).resolve())
        programs, data = serialize_programs(export_language_model(model, dtype="float32"))
        to_onnx(model, folder)
        engine = (BUNDLES / "engine.js").read_text(encoding="utf-8")
        (folder / "engine.js").write_text(f"const ENGINE = {engine}", encoding="utf-8")
        (folder / "page.html").write_text(PAGE, encoding="utf-8")
        times, apart, version = measure(folder, 3 if given.quick else given.rounds, programs, data)
        studio = made("float16", PROMPT).save(folder / "studio.html").stat().st_size
        runtime = sum((folder / "peer" / name).stat().st_size for name in RUNTIME)
        onnx = sum((folder / f"{name}.onnx").stat().st_size for name in ("read", "step"))
    rows = [
        row("96 letters read", times, "own", "peer"),
        row("the same, every map seen", times, "seen", "peer"),
        row("a letter more, keys and values kept", times, "own step", "peer step"),
        sizes("the engine alone", len(engine), runtime),
        sizes("all that a page needs; ours is the whole studio", studio, runtime + onnx),
    ]
    notes = [
        f"Chromium {version}; onnxruntime-web {VERSION}, WebAssembly on one thread, which is what a file opened from a "
        f"disk may have. Logits are at most {apart:.1e} apart. onnxruntime gives no maps."
    ]
    header = ["what", "tfviz", "onnxruntime-web", "the peer, times as much"]
    title = "The page's engine beside onnxruntime-web"
    report("engine", title, header, rows, seeds=[SEED], quick=given.quick, notes=notes)


def row(what: str, times: dict[str, list[float]], own: str, peer: str) -> list[str]:
    ratio = median(b / a for a, b in zip(times[own], times[peer], strict=True))
    return [what, f"{median(times[own]):.1f} ms", f"{median(times[peer]):.1f} ms", f"{ratio:.2f}"]


def sizes(what: str, own: int, peer: int) -> list[str]:
    return [what, f"{own / MB:.2f} MB", f"{peer / MB:.2f} MB", f"{peer / own:.1f}"]


if __name__ == "__main__":
    main()
