"""Display a lesson's statements about its own run: sentences with computed values, and checked statements.

A lesson runs with any parameters, so a measured number in its prose would be wrong in most runs. `state` displays a
sentence with values of this run. `check` displays whether statements of the prose hold in this run; in a published
lesson, all of them must hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

MAX_OPEN = 2  # a longer list of statements that all hold is folded
HOLDS_PREFIX, FAILS_PREFIX = "holds in this run: ", "does not hold in this run: "


class Statement:
    """Text that a notebook displays as Markdown.

    Attributes:
        markdown: the text.
        plain: the same text for outputs without formatting.
    """

    def __init__(self, markdown: str, plain: str) -> None:
        self.markdown, self.plain = markdown, plain

    def __repr__(self) -> str:
        """Return the plain text."""
        return self.plain

    def _repr_markdown_(self) -> str:
        return self.markdown


def state(sentence: str) -> Statement:
    """Return a sentence that a notebook displays as prose.

    Args:
        sentence: Markdown, usually an f-string of values of this run.

    >>> state(f"Two heads are right in {0.985:.0%} of the texts.")
    Two heads are right in 98% of the texts.
    """
    return Statement(sentence, sentence)


def check(statements: Mapping[str, Any]) -> Statement:
    """Return a list of statements that shows whether each holds in this run.

    A list of more than two that all hold is folded below a line that says so.

    Args:
        statements: statement -> a truth value, such as {"two heads beat one": two > one}. A truth value is anything
            that `bool` converts, such as a comparison of numbers, or `(a > b).all()` of tensors.

    Raises:
        ValueError: `statements` is empty.

    >>> check({"two heads beat one": 0.98 > 0.43, "one head is right in half of the texts": 0.43 > 0.5})
    holds in this run: two heads beat one
    does not hold in this run: one head is right in half of the texts
    """
    if not statements:
        raise ValueError("no statement to check; give {sentence: truth value}")
    results = {sentence: bool(truth) for sentence, truth in statements.items()}
    plain = "\n".join(f"{HOLDS_PREFIX if truth else FAILS_PREFIX}{sentence}" for sentence, truth in results.items())
    marks = "\n".join(
        f"- ✓ {sentence}" if truth else f"- ✗ **not in this run:** {sentence}" for sentence, truth in results.items()
    )
    if len(results) > MAX_OPEN and all(results.values()):
        summary = f"✓ Checked in this run: all {len(results)} statements hold"
        return Statement(f"<details><summary>{summary}</summary>\n\n{marks}\n\n</details>", plain)
    return Statement(f"Checked in this run:\n\n{marks}", plain)


def failed(notebook: NotebookNode) -> list[str]:
    """Return the statements that `check` found not to hold in an executed notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = ["".join(output.get("data", {}).get("text/plain", "")) for output in outputs]
    return [
        line.removeprefix(FAILS_PREFIX) for text in texts for line in text.splitlines() if line.startswith(FAILS_PREFIX)
    ]
