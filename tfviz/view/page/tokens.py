"""JavaScript in tokens: enough to tell code from strings, templates, regular expressions and comments."""

import re
from typing import NamedTuple


class Token(NamedTuple):
    """A piece of a script.

    Attributes:
        gap: what must stand before it of space and comments: nothing, a space, or the end of a line.
        kind: `word` (a name, a keyword, a number), `mark`, or `whole` (a string, a template, a regular expression).
        text: the piece itself.
        depth: brackets around it.
    """

    gap: str
    kind: str
    text: str
    depth: int


PIECE = re.compile(
    r"""(?P<gap>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<whole>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>\d[\w.]*|[\w$]+)
    | (?P<mark>\+\+|--|[^\w\s"'`/\\])""",
    re.VERBOSE | re.DOTALL,
)
REGULAR = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
WITHIN = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)  # of a template, up to its end or to code
CLOSERS = {"(": ")", "[": "]", "{": "}"}
CONDITIONS = {"if", "while", "for", "with"}  # the bracket after one ends no value
OPERATORS = {
    "await", "case", "delete", "do", "else", "extends", "in", "instanceof", "new", "of", "return", "throw", "typeof",
    "void", "yield",
}  # fmt: skip


def tokens(text: str) -> list[Token]:
    """The tokens of a module. A slash after `}` could be two things and is refused; so is what does not end.

    Raises:
        ValueError: what the text is not, and in which line.
    """
    return _Scan(text).run(0)[0]


class _Scan:
    def __init__(self, text: str):
        self.text = text

    def run(self, at: int, inside: bool = False) -> tuple[list[Token], int]:
        """The tokens from here on, and where they end: at the end of the text, or `inside` a template at its `}`."""
        found: list[Token] = []
        opened: list[tuple[str, bool]] = []  # the bracket awaited, and whether a value ends there
        gap, value = "", False
        while at < len(self.text):
            kind, end = self.piece(at, value, bool(found) and found[-1].text == "}")
            piece, start, at = self.text[at:end], at, end
            if kind == "gap":
                gap = "\n" if "\n" in piece or gap == "\n" else " "
                continue
            if piece in CLOSERS.values() and kind == "mark":
                if inside and not opened and piece == "}":
                    return found, at
                if not opened or opened[-1][0] != piece:
                    raise self.wrong(start, f"{piece!r} closes nothing")
            closes = opened.pop() if kind == "mark" and piece in CLOSERS.values() else None
            found.append(Token(gap, kind, piece, len(opened)))
            if kind == "mark" and piece in CLOSERS:
                opened.append((CLOSERS[piece], not _conditional(found)))
            gap, value = "", closes[1] if closes else _ends_value(found)
        if opened or inside:
            raise self.wrong(at, f"{opened[-1][0] if opened else '}'!r} is missing")
        return found, at

    def piece(self, at: int, value: bool, unclear: bool) -> tuple[str, int]:
        """What stands here, and where it ends."""
        if match := PIECE.match(self.text, at):
            return str(match.lastgroup), match.end()
        if self.text[at] == "`":
            return "whole", self.template(at + 1)
        if self.text[at] == "/" and unclear:
            raise self.wrong(at, "a slash after '}' is a quotient or a regular expression; put one of them in brackets")
        if self.text[at] == "/" and value:
            return "mark", at + 1
        if self.text[at] == "/" and (match := REGULAR.match(self.text, at)):
            return "whole", match.end()
        raise self.wrong(at, f"{self.text[at : at + 20]!r} does not end, or is no JavaScript")

    def template(self, at: int) -> int:
        """Where a template ends that has begun."""
        start = at
        while True:
            at = WITHIN.match(self.text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if at >= len(self.text):
                raise self.wrong(start, "a template does not end")
            if self.text[at] == "`":
                return at + 1
            at = self.run(at + 2, inside=True)[1]

    def wrong(self, at: int, why: str) -> ValueError:
        return ValueError(f"line {self.text.count(chr(10), 0, at) + 1}: {why}")


def _conditional(found: list[Token]) -> bool:
    """Whether the bracket just opened holds a condition: `if (...) /a/.test(b)` has a regular expression."""
    return len(found) > 1 and found[-2].text in CONDITIONS and found[-1].text == "("


def _ends_value(found: list[Token]) -> bool:
    """Whether the last token can end a value, so that a slash after it divides."""
    _, kind, text, _ = found[-1]
    is_property = len(found) > 1 and found[-2].text == "."
    return kind == "whole" or (kind == "word" and (text not in OPERATORS or is_property)) or text in ("++", "--")
