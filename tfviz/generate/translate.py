"""Translation of many texts with an encoder-decoder, in batches of texts of similar length."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from tfviz.checks import at_least
from tfviz.generate.beam import EncoderDecoder, search
from tfviz.generate.tokenizer_check import check_tokenizer
from tfviz.text.tokenizer import BatchTokenizer


def translate(
    model: EncoderDecoder,
    texts: Sequence[str],
    source_tokenizer: BatchTokenizer,
    target_tokenizer: BatchTokenizer | None = None,
    *,
    num_beams: int = 5,
    length_penalty: float = 1.0,
    max_new_tokens: int = 100,
    eos: str | None = "[EOS]",
    max_tokens: int = 2000,
    progress: bool = False,
) -> list[str]:
    """Translate each text by beam search; return the translations in the order of the texts.

    An empty text is translated from a source that contains only the token `eos`.

    Args:
        model: an encoder-decoder.
        texts: the texts to translate.
        source_tokenizer: the tokenizer of the texts.
        target_tokenizer: the tokenizer of the translations, which begin with `[BOS]`; None: `source_tokenizer`.
        num_beams: the beam width; see `beam.steps`.
        length_penalty: the exponent of the length penalty; see `beam.steps`.
        max_new_tokens: the maximum number of tokens in a translation; see `beam.steps`.
        eos: the token that ends each source, as in training; None: no such token.
        max_tokens: the maximum number of source tokens in a batch, including padding.
        progress: whether to show a progress bar.

    Raises:
        ValueError: a text is empty and `eos` is None.
        KeyError: a tokenizer lacks `[BOS]`, `[EOS]` or `eos`.
    """
    from tqdm import tqdm

    at_least(1, max_tokens=max_tokens, num_beams=num_beams, max_new_tokens=max_new_tokens)
    target_tokenizer = target_tokenizer or source_tokenizer
    check_tokenizer(getattr(model, "source", None), source_tokenizer, "source ")
    check_tokenizer(getattr(model, "target", None), target_tokenizer, "target ")
    end = torch.tensor([] if eos is None else [source_tokenizer[eos]], dtype=torch.long)
    sources = [torch.cat((ids, end)) for ids in source_tokenizer.encode_batch(texts)]
    if not all(map(len, sources)):
        raise ValueError("one of the texts is empty, and with eos=None there is nothing to read; leave it out")
    options: dict[str, Any] = {"bos": target_tokenizer["[BOS]"], "eos": target_tokenizer["[EOS]"]}
    options |= {"num_beams": num_beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens}
    translations = [""] * len(sources)
    with tqdm(total=len(sources), unit="text", disable=not progress) as bar:
        for rows in _batches_by_length([len(ids) for ids in sources], max_tokens):
            beam = search(model, pad_sequence([sources[row] for row in rows], batch_first=True), **options)
            for index, row in enumerate(rows):
                translations[row] = target_tokenizer.decode(beam.ids(index))
            bar.update(len(rows))
    return translations


def _batches_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yield indices of rows of similar length, longest first; a batch has at most `max_tokens` tokens, or one row."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    while order:
        count = max(1, max_tokens // lengths[order[-1]])
        yield order[-count:]
        order = order[:-count]
