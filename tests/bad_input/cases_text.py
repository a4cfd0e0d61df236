"""Cases of invalid texts, files, tokenizers and batches."""

SETUP = r"""
import gzip, os, random
from pathlib import Path
import torch
from tokenizers import Tokenizer, models
from tfviz import text
from tfviz.text import buckets, corpora, datasets, subwords, tasks
NAN = float("nan")
os.environ["TFVIZ_CACHE"] = "cache"
os.environ.pop("TFVIZ_DATA", None)
ENDLESS = "".join(random.Random(1).choices("abcdefghij", k=2_000_000))
rows = [torch.arange(1, n) for n in (3, 6, 3, 7)]
ids = torch.arange(50) % 11
words = text.train_whole_words("one two three four five", 12)

def at(path, content=b""):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)

def pipe(path):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return str(path)

def tokenizer(content):
    return text.SubwordTokenizer.load(at("tokenizer.json", content))

def changed(*swap):
    words.save("tokenizer.json")
    return tokenizer(Path("tokenizer.json").read_text().replace(*swap))
"""

CASES = [
    # ids
    ("text.Windows(ids.float(), 3, 2)", "ids is float32"),
    ("text.Windows(ids - 5, 3, 2)", "ids holds -5"),
    ("text.Windows(ids > 3, 3, 2)", "ids is bool"),
    ("text.GrowingWindows(ids.half(), 8, 2, 6)", "ids is float16"),
    ("text.Streams(ids.double(), 3, 2)", "ids is float64"),
    ("text.in_order(ids + 0.5, 3, 2)", "ids is float32"),
    ("text.pad([ids, torch.tensor([0.5])])", "row 1 is float32"),
    ("text.pad([torch.tensor([-3])])", "row 0 holds -3"),
    ("text.add_special_tokens(rows, bos=-1)", "bos is -1"),
    ("text.add_special_tokens(rows, eos=-2)", "eos is -2"),
    ("text.Buckets([torch.tensor([0.5, 1.0])])", "row 0 is float32"),
    ("text.Buckets(rows, torch.rand(4))[0][1].dtype", "= torch.float32"),
    ("text.Windows(ids[None], 3, 2)", r"ids are \[1, 50\]"),
    ("text.in_order(ids.view(5, 10), 3, 2)", r"ids are \[5, 10\]"),
    ("text.pad([ids[:3], ids[None]])", r"row 1 is \[1, 50\]"),
    ("text.add_special_tokens([ids[None]])", r"row 0 is \[1, 50\]"),
    ("text.Buckets([ids[None], ids[None]])", r"row 0 is \[1, 50\]"),
    ("text.sentence_pairs([ids[:2], ids[2:4]])", "a sentence is empty, or not a one-dimensional tensor"),
    ("text.sentence_pairs([[ids[:0], ids[:3]], [ids[:2]]])", "a sentence .* empty"),
    ("text.sentence_pairs([[ids[:3], ids[:3]], [ids[:2]]], cls=-1)", "cls is -1"),
    ("text.TokenDropout([(torch.rand(2, 3),)], 0.5)[0]", "ids is float32"),
    ("text.MaskedTokens([(torch.rand(2, 3),)], words)[0]", "ids is float32"),
    ("text.MaskedTokens([(torch.full((2, 3), 99),)], words)[0]", "holds the id 99"),
    ("text.MaskedTokens(rows, 20)[0]", r"batches\[0\] is a tensor of shape \[2\]"),
    ("text.TokenDropout(rows, 0.5)[0]", r"batches\[0\] is a tensor"),
    # kinds of whole numbers
    ("text.Windows(ids.to(torch.uint8), 3, 2)[0][0].dtype", "= torch.int64"),
    ("text.Windows(ids.to(torch.uint16), 5, 2)[0][0].dtype", "= torch.int64"),
    ("next(text.in_order(ids.to(torch.uint32), 5, 2))[0].dtype", "= torch.int64"),
    ("text.pad([ids[:1].to(torch.uint8), torch.tensor([300, 4])]).tolist()", r"= \[\[0, 0\], \[300, 4\]\]"),
    ("text.pad([ids[:1].to(torch.uint8)], -100).dtype", "= torch.int64"),
    ("text.Buckets([ids[1:2].to(torch.int8), torch.tensor([300])], max_tokens=4)[0][0].max()", r"= tensor\(300\)"),
    # sizes of batches
    ("text.Windows(ids, 0, 3)", "length is 0"),
    ("text.Windows(ids, 3, 0)", "batch_size is 0"),
    ("text.Windows(ids, 3, 2, seed=-1)", "seed is -1"),
    ("text.Windows(ids, 50, 2)", "the text has 50 tokens; .* need 51"),
    ("text.Windows(ids, 49, 2)[0][0].shape", r"= torch.Size\(\[2, 49\]\)"),
    ("text.in_order(ids, 50, 2)", "need 51: take a longer text"),
    ("corpora.split('abc', -0.5)", "train_fraction is -0.5; it must lie between 0 and 1"),
    ("text.Windows(ids, 5, 10**12)", "more than this machine's memory"),
    ("text.Streams(ids, 3, -1)", "batch_size is -1"),
    ("text.Streams(ids, 30, 3)", "take a longer text, fewer streams or shorter segments"),
    ("text.in_order(ids, 0, 3)", "length is 0"),
    ("text.Buckets(rows, max_tokens=0)", "max_tokens is 0"),
    ("text.Buckets(rows, max_tokens=5)", "row 3 has 6 tokens"),
    ("text.Buckets(rows, seed=-1)", "seed is -1"),
    ("text.Buckets(rows, rows[:2])", r"the columns have \[4, 2\] rows"),
    ("text.Buckets([torch.tensor([])])", "row 0 is empty"),
    ("text.pad([])", "there are no rows to pad"),
    ("text.sentence_pairs([rows, rows], length=3)", "length is 3"),
    ("text.sentence_pairs([rows])", "there are 1 documents"),
    ("text.sentence_pairs([rows[:1], rows[:1]])", "no document has two sentences"),
    ("text.Buckets([])", "nothing to sort by length"),
    ("text.Buckets(torch.arange(3))", "nothing to sort by length"),
    ("text.Buckets()", r"the columns have \[\] rows"),
    ("text.GrowingWindows(ids, length=3, batch_size=3, steps=6)", "length is 3"),
    ("text.GrowingWindows(ids, length=8, batch_size=3, steps=0)", "steps is 0"),
    ("text.GrowingWindows(ids, length=50, batch_size=3, steps=6)", "the text has 50 tokens"),
    ("text.RepeatedTokens(vocab_size=0, length=7, batch_size=2)", "vocab_size is 0"),
    ("text.RepeatedTokens(11, 7, 2, block=(0, 4))", r"block\[0\] is 0"),
    ("text.RepeatedTokens(11, 7, 2, block=(4, 3))", r"block\[1\] is 3; it must be from 4 to 7"),
    ("text.RepeatedTokens(11, 7, 2, block=(3, 8))", r"block\[1\] is 8"),
    ("text.TokenDropout(text.Buckets(rows), 1.0)", "p is 1.0"),
    ("text.TokenDropout(text.Buckets(rows), NAN)", "p is nan"),
    ("text.MaskedTokens(text.Buckets(rows), 20, mlm_probability=0)", "mlm_probability is 0"),
    ("text.MaskedTokens(text.Buckets(rows), 7)", "tokenizer has 7 tokens, all of them special"),
    # steps
    ("text.Windows(ids, 3, 2)[-1]", "step is -1"),
    ("text.Streams(ids, 3, 2)[-1]", "step is -1"),
    ("text.Windows(ids, 7, 4)[1.5]", "step is 1.5"),
    ("text.Windows(ids, 7, 4)[True]", "step is True"),
    ("text.Buckets(rows, max_tokens=20)[1.5]", "step is 1.5"),
    ("text.Windows(ids, 7, 4)[torch.tensor(3)][0].shape", r"= torch.Size\(\[4, 7\]\)"),
    ("list(text.Windows(ids, 3, 2))", "Windows has no last batch"),
    ("list(text.Buckets(rows, max_tokens=12))", "Buckets has no last batch"),
    ("list(text.TokenDropout(text.Buckets(rows, max_tokens=12), 0.1))", "TokenDropout has no last batch"),
    # texts and files; tests/text/test_corpora.py and test_datasets.py have the others
    ("corpora.load('')", "no corpus and no file is called ''"),
    ("corpora.load('a' * 5000)", "no corpus and no file is called"),
    ("corpora.load('a\\0b')", "no corpus and no file is called"),
    ("corpora.load(at('a.txt'))", "a.txt is empty"),
    ("pipe('cache/enwik8/enwik8'); it = corpora.verify('enwik8')", "= absent"),
    ("corpora.fetch('imdb', 'x')", "imdb has no file x"),
    ("corpora.load('shakespear')", "'shakespear'; there are: pydoc, shakespeare"),
    ("datasets.reviews('valid')", "split is 'valid'; it must be one of: train, test"),
    ("datasets.pairs('en', 'de', 'test')", "split is 'test'; it must be one of: train, val, test_2016_flickr"),
    ("datasets.pairs('cs', 'en')", "source is 'cs'; it must be one of: en, de, fr"),
    ("datasets.pairs('en', 'cs')", "target is 'cs'"),
    ("datasets.pairs('en', 'en')", "source and target are both 'en'"),
    ("datasets.Ratings(ids[:7], ids[:7], torch.ones(7), ['a'] * 7).split(0.0)", "of 7 ratings; it must leave"),
    ("datasets.Ratings(ids[:7], ids[:7], torch.ones(7), ['a'] * 7).split(1.0)", "of 7 ratings; it must leave"),
    ("datasets.Ratings(ids[:7], ids[:7], torch.ones(7), ['a'] * 7).split(NAN)", "of 7 ratings; it must leave"),
    ("datasets.Ratings(ids[:7], ids[:7], torch.ones(7), ['a'] * 7).split(0.01)", "of 7 ratings; it must leave"),
    ("datasets.Ratings(ids[:2], torch.tensor([0, 5]), torch.ones(2), ['a'])", "movies hold 5"),
    ("datasets.Ratings(ids[:2], ids[:1], torch.ones(2), ['a'])", "users 2, movies 1"),
    ("datasets.Ratings(ids[:2], ids[:2] * 0, torch.full((2,), NAN), ['a'])", "values hold NaN"),
    ("datasets.Ratings(ids[:2] / 2, ids[:2] * 0, torch.ones(2), ['a'])", "users is float32"),
    ("datasets.Reviews(['a', 'b'], ids[:1])", "texts 2, labels 1"),
    ("datasets.Reviews(['a'], torch.tensor([7]))", r"1 \(positive\) or 0"),
    # tokenizers
    ("text.train_wordpiece(['\\ud800'])", "text 0 has a lone surrogate"),
    ("text.train_bpe(['fine', 'a\\udfff'], 300)", "text 1 has a lone surrogate"),
    ("text.ByteTokenizer().encode('ab\\ud800')", "character 2 is U.D800, a lone surrogate"),
    ("words.encode('\\ud800')", "has a lone surrogate"),
    ("len(text.train_bpe([ENDLESS], 300))", "= 300"),
    ("len(text.train_bpe([' ' * 2_000_000 + 'a'], 264))", "= 264"),
    ("text.train_bpe('some text', 100)", "vocab_size is 100; it must be at least 264, since 263"),
    ("text.train_characters('some text', 10**30)", "size is 1000000000000000000000000000000"),
    ("text.train_bpe(['abc'], 10**9)", "vocab_size is 1000000000"),
    ("text.train_whole_words(iter(['a', None]))", "text 1 is a NoneType"),
    ("text.SubwordTokenizer(Tokenizer(models.BPE())).to_spec()", "its pre_tokenizer is None"),
    ("text.SubwordTokenizer(words.backend_tokenizer, special={'msk': '[MASK]'})", "special names 'msk'"),
    (
        "text.SubwordTokenizer(words.backend_tokenizer, special={'mask': '<mask>'})",
        "which is not one of the tokenizer's tokens",
    ),
    ("words['[NONE]']", r"'\[NONE\]' is not one of the 12 tokens"),
    ("words[5]", "token is 5"),
    ("words.encode_batch('one')", "texts is one string; give a list"),
    ("words.encode_batch(['one', b'two'])", r"texts\[1\] is b'two'"),
    ("words.decode([99])", "id 99 is not one of the 12 tokens"),
    ("words.decode([-1])", "id -1 is not one of"),
    ("words.decode([1.5])", "1.5 is not an id"),
    ("words.decode(torch.tensor(3))", r"ids is a tensor of shape \[\]"),
    ("words.decode(torch.tensor([[1, 2]]))", "is not an id; give integers, of one text at a time"),
    ("text.CharacterTokenizer('abc').decode([True])", "True is not an id"),
    ("text.CharacterTokenizer('abc').decode(torch.tensor([True, False]))", "is not an id"),
    ("text.ByteTokenizer().decode([256])", "id 256 is not one of the 256 tokens"),
    ("text.CharacterTokenizer('ab').encode('abc')", r"character 'c' \(U\+0063\) at place 2"),
    ("text.CharacterTokenizer('cab').encode('\\0ab')", r"character '\\x00' \(U\+0000\) at place 0"),
    ("text.CharacterTokenizer('aba')", "must all differ"),
    (
        "text.CharacterTokenizer('ab').encode('').dtype, text.CharacterTokenizer('ab').decode([])",
        r"= \(torch.int64, ''\)",
    ),
    ("text.CharacterTokenizer.from_text('')", "the text is empty"),
    ("words.save('')", "path is empty"),
    ("words.save(at('below') + '/x.json')", "below"),
    (
        "os.mkdir('d'); words.save('d'); it = text.SubwordTokenizer.load('d')",
        r"= SubwordTokenizer\(WordLevel, 12 tokens\)",
    ),
    ("changed('three', 'threw')", "its checksum is another one"),
    ("changed('Whitespace', 'WhitespaceSplit')", "its checksum is another one"),
    ("changed('  ', ' ')", r"= SubwordTokenizer\(WordLevel, 12 tokens\)"),
    ("it = tokenizer(words.backend_tokenizer.to_str())", r"= SubwordTokenizer\(WordLevel, 12 tokens\)"),
    ("text.SubwordTokenizer.load(pipe('tokenizer.json'))", "there is no tokenizer at tokenizer.json"),
    ("text.SubwordTokenizer(None)", "tokenizer is a NoneType"),
    # tasks
    ("tasks.dates(10**12)", "more than this machine's memory"),
    ("tasks.dates(3, seed=-1)", "seed is -1"),
    ("tasks.dates(1, 'es')", "source is 'es'; it must be one of: en, de, fr, zh"),
    ("tasks.dates(1, 'en', 'ISO')", "target is 'ISO'; it must be one of: iso, en, de, fr, zh"),
    ("tasks.numbers(1, 'zh')", "language is 'zh'; it must be one of: en, de, fr, ja"),
    ("tasks.numbers(1, below=0)", "below is 0; it must be from 1 to 1000000"),
    ("tasks.numbers(1, below=1_000_001)", "below is 1000001"),
    ("tasks.copy(1, (0, 3))", r"length is \(0, 3\)"),
    ("tasks.sort(1, (4, 3))", r"length is \(4, 3\)"),
    ("tasks.reverse(1, vocab_size=0)", "vocab_size is 0; it must be from 1 to 26"),
    ("tasks.copy(1, vocab_size=27)", "vocab_size is 27"),
    ("tasks.copy(3, 4)", "length is 4"),
    ("tasks.copy(2, (1, 10**9))", "at most 1,000,000"),
    ("tasks.synthetic_reviews(3, seed=-1)", "seed is -1"),
]
