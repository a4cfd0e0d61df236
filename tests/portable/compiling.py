"""Compile the page's WebAssembly matrix kernel from its text: `python tests/portable/compiling.py`."""

import base64
from pathlib import Path

import tfviz.view

ENGINE = Path(tfviz.view.__file__).parent / "js" / "engine"
COMPILED = ENGINE / "products-wasm.js"
MODULE = """\
// The bytes of `products.wat`, compiled by `tests/portable/compiling.py`: a page cannot fetch a second file.
export const COMPILED_PRODUCTS =
  "{}";
"""


def compiled() -> str:
    """What `products-wasm.js` has to say."""
    from wasmtime import wat2wasm

    text = (ENGINE / "products.wat").read_text(encoding="utf-8")
    return MODULE.format(base64.b64encode(wat2wasm(text)).decode())


if __name__ == "__main__":
    COMPILED.write_text(compiled(), encoding="utf-8")
