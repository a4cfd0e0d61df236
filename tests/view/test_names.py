"""No module of the page uses a name that it neither declares nor imports: joined into one script it would still run."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tfviz.view.page.bundle import GIVEN, JS

NODE = shutil.which("node")
FREE = Path(__file__).with_name("free.js")
MODULES = sorted(path.relative_to(JS).with_suffix("").as_posix() for path in JS.rglob("*.js"))
BROWSER = {
    "Array",
    "Blob",
    "Boolean",
    "DecompressionStream",
    "Error",
    "Float32Array",
    "Float64Array",
    "Image",
    "ImageData",
    "Infinity",
    "Int32Array",
    "Int8Array",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "RegExp",
    "ResizeObserver",
    "Set",
    "String",
    "TextDecoder",
    "TextEncoder",
    "URL",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "WeakMap",
    "WebAssembly",
    "Worker",
    "atob",
    "clearTimeout",
    "document",
    "getComputedStyle",
    "globalThis",
    "matchMedia",
    "performance",
    "queueMicrotask",
    "requestAnimationFrame",
    "setTimeout",
    "undefined",
}
KNOWN = BROWSER | set(GIVEN) | {"ENGINE"}


def free(folder, *modules):
    """The names that each module takes from nowhere."""
    if NODE is None:
        pytest.skip("there is no Node")
    command = [NODE, "--no-warnings", "--expose-internals", str(FREE), str(folder), *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Cannot find module 'internal/" in done.stderr:
        pytest.skip("this Node carries no parser")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_module_imports_what_it_uses():
    found = free(JS, *MODULES)
    assert len(found) == len(MODULES) > 100
    assert {module: wrong for module, names in found.items() if (wrong := sorted(set(names) - KNOWN))} == {}


CASES = {
    "export const a = b;": ["b"],
    'import { b } from "./b.js";\nconst a = b;': [],
    "const f = ({ a, b: [c = d, ...e] }, g = h) => a + c + e + g;": ["d", "h"],
    "const f = () => { { const a = 1; } return a; };": ["a"],
    "for (const a of b) a(); a;": ["a", "b"],
    "class A extends B { c = d; e(f) { return this.g + f.h + A; } static [i] = 1; }": ["B", "d", "i"],
    "const a = { b: c, d, e() { return f; }, [g]: 1 };": ["c", "d", "f", "g"],
    "const a = `${b} ${`${c}`}`;": ["b", "c"],
    "try { a(); } catch ({ b }) { b(c); }": ["a", "c"],
    "switch (a) { case b: { const c = 1; } default: c; }": ["a", "b", "c"],
    "f(); function f() { return arguments.length + g; }": ["g"],
    "a.b.c(); const { d } = e;": ["a", "e"],
    "out: for (let i = 0; i < n; i++) { continue out; }": ["n"],
}


def test_names_are_resolved_as_the_language_does_it(tmp_path):
    for i, text in enumerate(CASES):
        (tmp_path / f"m{i}.js").write_text(text)
    found = free(tmp_path, *(f"m{i}" for i in range(len(CASES))))
    assert dict(zip(CASES, found.values())) == CASES
