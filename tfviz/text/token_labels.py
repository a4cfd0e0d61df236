"""Tokens as a reader may see them: the bytes that each stands for, and signs for what cannot be seen."""

from __future__ import annotations

import re
from typing import Any

from tfviz.text.tokens import SIGNS

BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # what SentencePiece falls back to


def _byte_signs() -> dict[str, int]:
    """Byte-level BPE writes each byte as one printable sign: itself where it is one, else one from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTES = _byte_signs()


class TokenLabels:
    """How the tokens of a `tokenizers.Tokenizer` are to be read, found by asking its decoder."""

    def __init__(self, tokenizer: Any):
        decoder = tokenizer.decoder
        self._on_bytes = decoder is not None and decoder.decode(["Ġ"]) == " "
        self._on_pieces = decoder is not None and decoder.decode(["a", "▁b"]) == "a b"
        self._falls_back = decoder is not None and decoder.decode(["a", "<0x62>"]) == "ab"

    def visible(self, token: str) -> str:
        """A token as text where that can be seen, else its bytes in hexadecimal digits."""
        shown = self.shown(token)
        return self.raw(token).hex(" ") if shown is None else shown

    def shown(self, token: str) -> str | None:
        """A token as text, if it is one that can be seen."""
        try:
            shown = "".join(SIGNS.get(sign, sign) for sign in self.raw(token).decode())
        except UnicodeDecodeError:
            return None
        return shown if any(map(str.isprintable, shown)) else None

    def raw(self, token: str) -> bytes:
        """What it stands for."""
        if self._on_bytes and all(sign in BYTES for sign in token):
            return bytes(BYTES[sign] for sign in token)
        if self._falls_back and (byte := BYTE.fullmatch(token)):
            return bytes.fromhex(byte[1])
        return (token.replace("▁", " ") if self._on_pieces else token).encode()
