"""Tokenizers of every kind as a page that asks Python is told of them: what each token says inside a text."""

import pytest
from foreign import TEXTS, fallback, regex, unigram

from tfviz.text import Subwords, bpe, wordpiece
from tfviz.text.token_labels import VISIBLE

KINDS = {"unigram": unigram(), "fallback": fallback(), "regex": regex()}
OWN = {"bpe": bpe(TEXTS, 300).tokenizer, "wordpiece": wordpiece(TEXTS, 90).tokenizer}
every = pytest.mark.parametrize("tokenizer", [*KINDS.values(), *OWN.values()], ids=[*KINDS, *OWN])
WRITTEN = ["the cat sat", "  the  dog", "für 漢字 👩‍👧 1984", "the\n\tmat.", "x", ""]


def said(told, ids):
    """As the page puts a text together."""
    return b"".join(bytes(told["bytes"].get(i) or told["texts"][i].encode()) for i in ids).decode(errors="replace")


@every
@pytest.mark.parametrize("written", WRITTEN)
def test_what_tokens_say_is_what_the_tokenizer_decodes(tokenizer, written):
    vocab = Subwords(tokenizer)
    ids = vocab.encode(written).tolist()
    front = " " if tokenizer in (KINDS["unigram"], KINDS["fallback"], OWN["wordpiece"]) else ""
    assert said(vocab.to_decoding_spec(), ids).removeprefix(front) == vocab.decode(ids)


@every
def test_a_page_shows_the_words_that_python_shows(tokenizer):
    vocab = Subwords(tokenizer)
    told = vocab.to_decoding_spec()
    for index, word in enumerate(vocab.words(range(len(vocab)))):
        shown = "".join(VISIBLE.get(sign, sign) for sign in told["texts"][index])
        assert word == told["names"].get(index, bytes(told["bytes"].get(index, [])).hex(" ") or shown)


@pytest.mark.parametrize("tokenizer", KINDS.values(), ids=KINDS)
def test_these_cannot_travel(tokenizer):
    with pytest.raises(ValueError, match="a page cannot encode as this vocabulary does"):
        Subwords(tokenizer).to_spec()


def test_spaces_and_bytes_of_sentencepiece_can_be_seen():
    vocab = Subwords(KINDS["fallback"])
    assert vocab.words(vocab.encode("the é")) == ["␣the", "␣", "c3", "a9"]
    assert vocab.to_decoding_spec()["bytes"][3 + 0xC3] == [0xC3]


def test_special_tokens_have_the_roles_that_transformers_gives_them():
    transformers = pytest.importorskip("transformers")
    named = {"mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>"}
    tokenizer = fallback()
    tokenizer.add_special_tokens(["<mask>"])
    from tfviz.text import subwords

    vocab = subwords.as_vocabulary(transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named))
    roles = {"unknown": 0, "classification": 1, "separator": 2, "mask": len(vocab) - 1}
    assert vocab.to_decoding_spec()["special"] == roles
    assert [vocab[name] for name in ("[MASK]", "[CLS]", "<mask>")] == [len(vocab) - 1, 1, len(vocab) - 1]
