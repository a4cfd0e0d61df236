"""A `tokenizers.Tokenizer` of any kind for a page that asks Python to encode: what each token says inside a text."""

from __future__ import annotations

from typing import Any

from tfviz.text.token_labels import TokenLabels
from tfviz.text.tokens import SIGNS

BROKEN = "\ufffd"


def decoding_spec(tokenizer: Any) -> dict[str, Any]:
    """Plain values from which a page decodes and shows words.

    Gives `texts`, what each id adds to a text; `bytes`, the bytes of those that are no whole characters; `names`, the
    words of those that are shown otherwise than their texts.
    """
    spelling = TokenLabels(tokenizer)
    size = 1 + max(tokenizer.get_vocab().values(), default=-1)
    found = [tokenizer.id_to_token(index) for index in range(size)]
    tokens = [token or "" for token in found]
    before = tokenizer.encode("a", add_special_tokens=False).ids
    front = len(tokenizer.decode(before))
    texts = [text[front:] for text in tokenizer.decode_batch([[*before, index] for index in range(len(tokens))])]
    cut = {index: list(spelling.raw(token)) for index, token in enumerate(tokens) if BROKEN in texts[index]}
    names = {i: f"⟨{i}⟩" if token is None else spelling.visible(token) for i, token in enumerate(found)}
    plain = ("".join(SIGNS.get(sign, sign) for sign in text) for text in texts)
    named = {index: names[index] for index, text in enumerate(plain) if names[index] != text and index not in cut}
    return {"kind": "asked", "texts": texts, "bytes": cut, "names": named}
