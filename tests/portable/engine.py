"""A page's engine to be asked from Python: programs go to Node, and what comes back is torch's again.

PYTEST_DONT_REWRITE: test modules name this as their plugin.
"""

import base64

import numpy
import pytest
import torch

from tfviz.portable.program import serialize_programs

KINDS = {"float32": numpy.float32, "int64": numpy.int32, "bool": numpy.uint8}
PAGE = """
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const textOf = (data) => {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength); let letters = "";
    for (let i = 0; i < bytes.length; i += 8192) letters += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return btoa(letters); };
const written = (tensor) =>
    ({ ...tensor, data: textOf(tensor.data), allowed: tensor.allowed && textOf(tensor.allowed) });
const waiting = new Map(), port = { postMessage: (told) => { waiting.get(told.id)(told); waiting.delete(told.id); } };
serve(port);
let asked = 0;
const ask = (message) => new Promise((done) => {
    const id = asked++; waiting.set(id, done); port.onmessage({ data: { ...message, id } }); });
window.load = async (programs, bytes) => {
    const { error } = await ask({ load: programs, bytes: bytesOf(bytes) });
    if (error) throw new Error(error); };
window.run = async (run, inputs, options) => {
    const { result, error } = await ask({ run, inputs, options });
    if (error) return { error };
    const outputs = Object.entries(result.outputs).map(([name, one]) => [name, written(one)]);
    const patterns = Object.entries(result.patterns).map(([site, all]) => [site, all.map(written)]);
    return { outputs: Object.fromEntries(outputs), patterns: Object.fromEntries(patterns) }; };
"""


class PageEngine:
    """Programs in a page."""

    def __init__(self, node):
        self.node = node

    def load(self, **programs):
        spec, data = serialize_programs(programs)
        self.node.evaluate("([programs, bytes]) => load(programs, bytes)", [spec, base64.b64encode(data).decode()])

    def run(self, name, inputs, **options):
        """Outputs by name, and the patterns by site: a list of its invocations."""
        given = {key: {"shape": list(one.shape), "data": one.reshape(-1).tolist()} for key, one in inputs.items()}
        made = self.node.evaluate("([name, inputs, options]) => run(name, inputs, options)", [name, given, options])
        if "error" in made:
            raise RuntimeError(made["error"])
        outputs = {key: _tensor(one) for key, one in made["outputs"].items()}
        return outputs, {site: [_tensor(one) for one in all] for site, all in made["patterns"].items()}


def _tensor(one):
    kind = KINDS[one.get("dtype", "float32")]
    return torch.from_numpy(numpy.frombuffer(base64.b64decode(one["data"]), kind).copy()).reshape(one["shape"])


@pytest.fixture
def page_engine(fresh_node):
    fresh_node.load("engine/worker")
    fresh_node.run(PAGE)
    return PageEngine(fresh_node)
