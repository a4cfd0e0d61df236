"""Visible labels of tokens, by their text or their bytes, and the decoded text of each token for a page."""

from __future__ import annotations

import re
from typing import Any

VISIBLE_SIGNS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍", "\0": "␀"}  # for invisible characters
BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")  # SentencePiece's token for a byte
PRINTABLE_BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]
# Byte-level BPE writes each byte as a printable character: its own if it has one, otherwise one from U+0100 on
BYTE_LEVEL_BYTES = {chr(byte): byte for byte in PRINTABLE_BYTES}
BYTE_LEVEL_BYTES |= {chr(256 + n): byte for n, byte in enumerate(sorted(set(range(256)) - set(PRINTABLE_BYTES)))}


def visible_sign(character: str) -> str:
    """Return a visible symbol for a space or a control character, and any other character unchanged."""
    return VISIBLE_SIGNS.get(character) or (chr(0x2400 + ord(character)) if character < " " else character)


class TokenLabels:
    """Visible labels for the tokens of a `tokenizers.Tokenizer`, whose decoder determines how tokens encode bytes."""

    def __init__(self, tokenizer: Any):
        self._tokenizer, decoder = tokenizer, tokenizer.decoder
        self._byte_level = decoder is not None and decoder.decode(["Ġ"]) == " "
        self._metaspace = decoder is not None and decoder.decode(["a", "▁b"]) == "a b"
        self._byte_fallback = decoder is not None and decoder.decode(["a", "<0x62>"]) == "ab"

    def id_label(self, index: int) -> str:
        """Return the label of an id's token; for an id without a token, the id in ⟨⟩."""
        token = self._tokenizer.id_to_token(index)
        return f"⟨{index}⟩" if token is None else self.label(token)

    def label(self, token: str) -> str:
        """Return a token as text if it is visible, otherwise its bytes in hexadecimal."""
        text = self.printable(token)
        return self.to_bytes(token).hex(" ") if text is None else text

    def printable(self, token: str) -> str | None:
        """Return a token as text, or None if it is not visible."""
        try:
            text = "".join(VISIBLE_SIGNS.get(sign, sign) for sign in self.to_bytes(token).decode())
        except UnicodeDecodeError:
            return None
        return text if any(map(str.isprintable, text)) else None

    def to_bytes(self, token: str) -> bytes:
        """Return the UTF-8 bytes that a token encodes."""
        if self._byte_level and all(sign in BYTE_LEVEL_BYTES for sign in token):
            return bytes(BYTE_LEVEL_BYTES[sign] for sign in token)
        if self._byte_fallback and (byte := BYTE_FALLBACK.fullmatch(token)):
            return bytes.fromhex(byte[1])
        return (token.replace("▁", " ") if self._metaspace else token).encode()


def decoding_spec(tokenizer: Any) -> dict[str, Any]:
    """Return plain values from which a page decodes the ids of any tokenizer; text is encoded in Python.

    The keys are `texts`, the text of each id; `bytes`, the bytes of ids that are not whole characters; `names`, the
    labels that differ from the texts; and `kind`, which is "kernel".
    """
    labels = TokenLabels(tokenizer)
    size = 1 + max(tokenizer.get_vocab().values(), default=-1)
    tokens = [tokenizer.id_to_token(index) for index in range(size)]
    before = tokenizer.encode("a", add_special_tokens=False).ids  # some decoders drop a space at the start of a text
    front = len(tokenizer.decode(before))
    texts = [text[front:] for text in tokenizer.decode_batch([[*before, index] for index in range(size)])]
    partial = {i: list(labels.to_bytes(tokens[i] or "")) for i, text in enumerate(texts) if "\ufffd" in text}
    names = {}
    for index, text in enumerate(texts):
        label = labels.id_label(index)
        if index not in partial and label != "".join(VISIBLE_SIGNS.get(sign, sign) for sign in text):
            names[index] = label
    return {"kind": "kernel", "texts": texts, "bytes": partial, "names": names}
