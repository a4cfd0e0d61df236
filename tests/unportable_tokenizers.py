"""Tokenizers of common models that pages cannot encode with, and tokenizers with other parts, for tests."""

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tfviz.text import SubwordTokenizer

TEXTS = ["The cat sat on the mat, the dog on the cat.", "für die Straße 漢字 1984 x = a_b(1)\n"] * 3


def changed(vocab, **parts):
    """The same tokenizer with other parts."""
    tokenizer = Tokenizer.from_str(vocab.backend_tokenizer.to_str())
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return SubwordTokenizer(tokenizer)


def unigram():
    """As T5 has it."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    made.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=70, special_tokens=special, unk_token="<unk>"))
    return made


def fallback():
    """As Llama 2 has it: pieces of SentencePiece, and bytes for what they lack."""
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "t",
        "h",
        "e",
        "▁t",
        "he",
        "▁the",
    ]
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he")]
    own = {piece: index for index, piece in enumerate(pieces)}
    made = Tokenizer(models.BPE(own, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    return made


def regex():
    """As Llama 3 has it: bytes in pairs, words cut by a rule of its own."""
    made = Tokenizer(models.BPE(ignore_merges=True))
    rule = pre_tokenizers.Split(Regex(r"\p{N}{1,3}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+"), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [rule, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    )
    return made
