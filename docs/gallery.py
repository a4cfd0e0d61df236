"""Draw the pictures of `gallery.md` from its blocks: `python docs/gallery.py`, into `docs/gallery`."""

import ast
import re
import tempfile
from pathlib import Path

import torch

PAGE = Path(__file__).with_suffix(".md")
BLOCK = re.compile(r"<!-- picture: (\w+) -->\n```python\n(.*?)```", re.DOTALL)


def draw(code: str, path: Path) -> None:
    """Run a block and save what its last line shows."""
    torch.manual_seed(0)
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr), f"the block of {path.stem} ends in no picture"
    names: dict[str, object] = {"__name__": "gallery"}
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:  # for `view.flow`, which reads it
        file.write(code)
        file.flush()
        exec(compile(ast.Module(lines, []), file.name, "exec"), names)
        eval(compile(ast.Expression(last.value), file.name, "eval"), names).save(path)


if __name__ == "__main__":
    folder = PAGE.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        draw(code, folder / f"{name}.png")
