"""Texts, files, archives and vocabularies that are none, never end, or contradict themselves; batches of nothing."""

SETUP = """
import csv, gzip, io, json, os, random, tarfile, zipfile
from pathlib import Path
import torch
from tokenizers import Tokenizer, models
from tfviz import text
from tfviz.text import buckets, corpora, datasets, grammar, subwords, tasks
NAN = float("nan")
os.environ["TFVIZ_CACHE"] = "cache"
os.environ.pop("TFVIZ_DATA", None)
draw = random.Random(1)
ENDLESS = "".join(draw.choices("abcdefghij", k=2_000_000))
rows = [torch.arange(1, n) for n in (3, 6, 3, 7)]
ids = torch.arange(50) % 11
words = text.whole_words("one two three four five", 12)

def at(path, content=b""):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)

def pipe(path):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return str(path)

def reviews(*files, links=()):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as whole:
        for name, content in files:
            entry = tarfile.TarInfo(f"aclImdb/train/{name}")
            entry.size = len(content)
            whole.addfile(entry, io.BytesIO(content))
        for name in links:
            entry = tarfile.TarInfo(f"aclImdb/train/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
            whole.addfile(entry)
    at("cache/imdb/aclImdb_v1.tar.gz", packed.getvalue())
    return datasets.reviews()

def ratings(rated, films="movieId,title\\n4,A\\n7,B\\n"):
    at("cache/movielens/movies.csv", films)
    at("cache/movielens/ratings.csv", "userId,movieId,rating\\n" + rated)
    return datasets.ratings()

def bomb(name):
    Path(name).write_bytes(gzip.compress(bytes(2**26)) * 17)
    return name

def endless_tar():
    entry = tarfile.TarInfo("aclImdb/train/pos/1_9.txt")
    entry.size = 10**10
    at("cache/imdb/aclImdb_v1.tar.gz", gzip.compress(entry.tobuf() + bytes(2**20)))
    return datasets.reviews()

def endless_zip():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("enwik8", b"zeros")
    head = packed.getvalue()
    place = head.index(b"PK\\1\\2") + 24  # where the directory says how much comes out
    at("cache/enwik8/enwik8.zip", head[:place] + (2**31).to_bytes(4, "little") + head[place + 4 :])
    return datasets.enwik8()

def tokenizer(content):
    return text.Subwords.load(at("tokenizer.json", content))

def changed(swap):
    words.save("tokenizer.json")
    whole = Path("tokenizer.json").read_text()
    return tokenizer(whole.replace(*swap))

def data(path):
    os.environ["TFVIZ_DATA"] = path
    try:
        return corpora.verify("shakespeare")
    finally:
        del os.environ["TFVIZ_DATA"]

good, bad = ("pos/1_9.txt", b"good"), ("neg/1_2.txt", b"bad")
"""

CASES = [
    ("text.Windows(ids.float(), 3, 2)", r"ids is float32; ids are whole numbers from 0 on \(int64\)"),
    ("text.Windows(ids - 5, 3, 2)", "ids holds -5; ids are whole numbers from 0 on"),
    ("text.Windows(ids > 3, 3, 2)", "ids is bool"),
    ("text.GrowingWindows(ids.half(), 8, 2, 6)", "ids is float16"),
    ("text.Streams(ids.double(), 3, 2)", "ids is float64"),
    ("text.in_order(ids + 0.5, 3, 2)", "ids is float32"),
    ("text.pad([ids, torch.tensor([0.5])])", "row 1 is float32"),
    ("text.pad([torch.tensor([-3])])", "row 0 holds -3"),
    ("text.add_special_tokens(rows, before=-1)", "before is -1; it must be at least 0"),
    ("text.add_special_tokens(rows, after=-2)", "after is -2"),
    ("text.Buckets([torch.tensor([0.5, 1.0])])", "row 0 is float32"),
    ("text.Buckets(rows, torch.rand(4))[0][1].dtype", "= torch.float32"),
    ("text.Windows(ids.to(torch.uint8), 3, 2)[0][0].dtype", "= torch.int64"),
    ("text.wordpiece(['\\ud800'])", "text 0 has a lone surrogate"),
    ("text.bpe(['fine', 'a\\udfff'], 300)", "text 1 has a lone surrogate"),
    ("text.Bytes().encode('ab\\ud800')", "character 2 is a lone surrogate"),
    ("corpora.load('shakespear')", "no corpus and no file is called 'shakespear'"),
    ("corpora.load(None)", "name is None; give a string"),
    ("corpora.load('')", "no corpus and no file is called ''"),
    ("corpora.load('a' * 5000)", "no corpus and no file is called"),
    ("corpora.load('a\\0b')", "no corpus and no file is called"),
    ("corpora.load(pipe('own.txt'))", "no corpus and no file is called 'own.txt'"),
    ("pipe('cache/shakespeare/input.txt'); it = corpora.verify('shakespeare')", "= absent"),
    ("pipe('cache/enwik8/enwik8'); it = corpora.verify('enwik8')", "= absent"),
    ("corpora.load(at('a.txt', 'né, né'.encode('utf-16')))", "a.txt is not UTF-8 text: .*; save it as UTF-8"),
    ("corpora.load(at('a.txt', 'one, two'.encode('utf-16-le')))", "8 of 16 characters are NUL, as in UTF-16; save it"),
    ("corpora.load(at('a.txt', 'one, two'.encode('utf-16-be')))", "8 of 16 characters are NUL"),
    ("corpora.load(at('a.txt', bytes(30)))", "30 of 30 characters are NUL"),
    ("corpora.load(at('a.txt', 'né'.encode('latin-1')))", "a.txt is not UTF-8 text"),
    ("corpora.load(at('a.txt', b'\\xef\\xbb\\xbfone\\r\\ntwo'))", r"= 'one\\ntwo'"),
    ("corpora.load(at('a.txt', b''))", "a.txt is empty; there is nothing to learn from"),
    ("data('typo')", "TFVIZ_DATA is 'typo', which is no folder; make it, name another, or unset it"),
    ("data(at('file'))", "TFVIZ_DATA is 'file', which is no folder"),
    ("corpora.split('abc', NAN)", "share is nan; it must lie between 0 and 1"),
    ("corpora.split('abc', 2)", "share is 2.0"),
    ("corpora.fetch('imdb', 'x')", "imdb has no file x"),
    ("corpora.paths('pydoc')", "pydoc is part of Python and has no file"),
    ("corpora.load('imdb')", "imdb is not one text; read it with"),
    ("len(reviews(good, bad).texts)", "= 2"),
    ("reviews(good, bad, good)", "have one number; take one of them out"),
    ("reviews(good, bad, ('pos/1_8.txt', b'x'))", "pos/1_8.txt and .*pos/1_9.txt have one number"),
    ("reviews(good, bad, ('pos/2_1.txt', b'x'))", "pos/2_1.txt has 1 stars and stands in pos"),
    ("reviews(good, ('neg/2_10.txt', b'x'))", "neg/2_10.txt has 10 stars and stands in neg"),
    ("reviews(good, bad, ('pos/3_5.txt', b'x'))", "has 5 stars"),
    ("reviews(good, bad, links=['pos/7_9.txt'])", "pos/7_9.txt is a link, or no file; pack the files themselves"),
    ("reviews(good, ('neg/1_2.txt', 'né'.encode('latin-1')))", "neg/1_2.txt is not UTF-8 text"),
    ("reviews(good)", "found 1 of pos and 0 of neg"),
    ("endless_tar()", "aclImdb_v1.tar.gz unpacks to more than 1,073,741,824 bytes"),
    ("endless_zip()", "enwik8 unpacks to more than 1,073,741,824 bytes"),
    ("datasets.parallel(bomb('a.gz'), 'a.gz')", "a.gz unpacks to more than 1,073,741,824 bytes"),
    ("datasets.parallel(pipe('a'), at('b', 'x'))", "there is no file a"),
    ("datasets.parallel('absent', 'absent')", "there is no file absent"),
    ("datasets.parallel(at('a', 'one\\n\\ntwo'), at('b', 'x'))", "a, line 2, is empty"),
    ("datasets.parallel(at('a', 'one\\ntwo'), at('b', 'x'))", "a has 2 lines and b has 1"),
    ("datasets.parallel(at('a.gz', 'no archive'), at('b', 'x'))", "a.gz is damaged"),
    ("datasets.parallel(None, 'b')", "source_file is None; give a string or a path"),
    ("datasets.reviews('dev')", "there is no split 'dev'; there are: train, test"),
    ("datasets.pairs('en', 'xx')", "there is no language 'xx'"),
    ("len(ratings('3,4,1\\n3,7,2\\n').values)", "= 2"),
    ("ratings('3,4,1\\n3,7,2\\n3,4,5\\n')", "user 3 rates movie 4 2 times; leave one of them"),
    ("ratings('3,4,9\\n')", "line 2: a rating is 0.5 to 5 stars"),
    ("ratings('3,4,nan\\n')", "a rating is 0.5 to 5 stars in halves, not nan"),
    ("ratings('3,5,1\\n')", "movie 5 is not in"),
    ("ratings('3,4,1\\n', films='movieId,title\\n4,A\\n4,B\\n')", "movie 4 stands there twice"),
    ("ratings('3,4,1\\n3,7,2\\n').split(NAN)", "share is nan of 2 ratings"),
    ("ratings('3,4,1\\n3,7,2\\n').split(0.5, seed=-1)", "seed is -1; it must be from 0"),
    ("at('cache/enwik8/enwik8', b'short'); datasets.enwik8()", "has 5 bytes; shares of 90, 5 and 5 % need at least 20"),
    ("at('cache/enwik8/enwik8.zip', b'no zip'); datasets.enwik8()", "enwik8.zip is damaged"),
    ("len(text.bpe([ENDLESS], 300))", "= 300"),
    ("len(text.bpe(['a' * 2_000_000], 264))", "= 264"),
    ("len(text.bpe([' ' * 2_000_000 + 'a'], 264))", "= 264"),
    ("text.bpe('some text', 100)", "a vocabulary of 100 tokens is too small; 263 are taken already: ask for 264"),
    ("text.bpe('some text', -1)", "a vocabulary of -1 tokens is too small"),
    ("text.wordpiece('some text', 9)", "a vocabulary of 9 tokens is too small; .* ask for"),
    ("text.whole_words('some text', 7)", "ask for 8"),
    ("text.letters('some text', 0)", "ask for 8"),
    ("text.letters('some text', 10**30)", "size is 1000000000000000000000000000000; give a whole number below 2"),
    ("text.bpe([])", "no text to build a vocabulary of"),
    ("text.whole_words([' \\n'])", "no text to build a vocabulary of"),
    ("text.whole_words(iter(['a', None]))", "text 1 is a NoneType; vocabularies are built of strings"),
    ("text.Subwords(Tokenizer(models.BPE())).described()", "since its pre_tokenizer is None; make it with text.bpe"),
    ("text.letters(iter([b'a']))", "text 0 is a bytes"),
    ("words['[NONE]']", r"'\[NONE\]' is not one of the 12 tokens"),
    ("words.encode_all('one')", "one string where many texts are meant"),
    ("words.encode(None)", "text is None; give a string"),
    ("words.encode_all(['one', b'two'])", r"texts\[1\] is b'two'"),
    ("words.decode([99])", "id 99 is none of the 12 tokens"),
    ("words.decode([-1])", "id -1 is none of"),
    ("words.decode([1.5])", "1.5 is no id; give whole numbers"),
    ("words.decode([None])", "None is no id"),
    ("words.decode(torch.tensor(3))", r"ids is a tensor of shape \[\]; give those of a text"),
    ("words.words(3)", r"ids is 3; give those of a text, such as \[3\]"),
    ("words.decode(['7'])", "'7' is no id"),
    ("words.decode(torch.tensor([[1, 2]]))", "is no id; give whole numbers, of one text at a time"),
    ("words.save(at('below') + '/x.json')", "below"),
    ("os.mkdir('d'); words.save('d'); it = text.Subwords.load('d')", r"= Subwords\(WordLevel, 12 tokens\)"),
    ("changed(('three', 'threw'))", "tokenizer.json was altered or is damaged: its checksum is another one"),
    ("changed(('Whitespace', 'WhitespaceSplit'))", "its checksum is another one"),
    ("changed((': 8', ': 9'))", "its checksum is another one"),
    ('changed((\'"sha256": "\', \'"sha256": "0\'))', "its checksum is another one"),
    ("changed(('  ', ' '))", r"= Subwords\(WordLevel, 12 tokens\)"),
    ("it = tokenizer(words.tokenizer.to_str())", r"= Subwords\(WordLevel, 12 tokens\)"),
    ("tokenizer('')", "tokenizer.json is damaged, or no JSON"),
    ("tokenizer('{}')", "tokenizer.json is damaged, or no tokenizer.json"),
    ("tokenizer('[]')", "tokenizer.json is damaged"),
    ("tokenizer('[' * 100_000)", "tokenizer.json is nested too deep"),
    ("tokenizer(bytes(40))", "tokenizer.json is damaged"),
    ("tokenizer(words.tokenizer.to_str()[:-9])", "tokenizer.json is damaged"),
    ("text.Subwords.load(pipe('tokenizer.json'))", "there is no tokenizer at tokenizer.json"),
    ("text.Subwords.load('absent')", "there is no tokenizer at absent"),
    ("text.Subwords(None)", "tokenizer is a NoneType; give a tokenizers.Tokenizer"),
    ("text.Characters('')", "the text is empty"),
    ("text.Characters('aa')", "must all differ"),
    ("text.Characters(None)", "characters is None; give a string"),
    ("text.Characters.of(b'ab')", "text is b'ab'; give a string"),
    ("text.Characters('ab').encode(None)", "text is None; give a string"),
    ("text.Characters('ab').encode('abc')", r"character 'c' \(U\+0063\) at place 2"),
    ("text.Characters('ab').decode([2])", "id 2 is none of the 2 tokens"),
    ("text.Characters('ab').decode([0.5])", "0.5 is no id"),
    ("text.Bytes().encode(b'ab')", "text is b'ab'; give a string"),
    ("text.Bytes().encode('\\ud800')", "character 0 is a lone surrogate"),
    ("words.encode('\\ud800')", "has a lone surrogate, U.D800"),
    ("text.Bytes().decode([256])", "id 256 is none of the 256 tokens"),
    ("text.Bytes().words([None])", "None is no id"),
    ("text.Windows(ids, 0, 3)", "length is 0; it must be at least 1"),
    ("text.Windows(ids, -5, 3)", "length is -5"),
    ("text.Windows(ids, 3, 0)", "batch is 0; it must be at least 1"),
    ("text.Windows(ids, 3, 2, seed=-1)", "seed is -1; it must be from 0"),
    ("text.Windows(ids, 3, 2)[-1]", "step is -1; it must be at least 0"),
    ("text.Windows(ids[None], 3, 2)", r"ids are \[1, 50\]; give those of one text, one axis"),
    ("text.Windows(ids, 50, 2)", "the text has 50 tokens; a window of 50 and its next token need 51"),
    ("text.Windows(None, 3, 2)", "ids is None; give a tensor"),
    ("text.Streams(ids, 0, 3)", "length is 0"),
    ("text.Streams(ids, 3, -1)", "batch is -1"),
    ("text.Streams(ids, 30, 3)", "take a longer text, fewer streams or shorter segments"),
    ("text.in_order(ids, 0, 3)", "length is 0; it must be at least 1"),
    ("text.in_order(ids, 3, 0)", "batch is 0"),
    ("text.in_order(ids.view(5, 10), 3, 2)", r"ids are \[5, 10\]"),
    ("text.Buckets(rows, tokens=0)", "tokens is 0; it must be at least 1"),
    ("text.Buckets(rows, tokens=5)", "row 3 has 6 tokens, more than a batch's 5"),
    ("text.Buckets(rows, seed=-1)", "seed is -1"),
    ("text.Buckets()", r"the columns have \[\] rows"),
    ("text.Buckets(rows, rows[:2])", r"the columns have \[4, 2\] rows"),
    ("text.Buckets([torch.tensor([])])", "row 0 is empty"),
    ("text.pad([])", "there are no rows to pad"),
    ("text.sentence_pairs([rows, rows], length=3)", "length is 3; three special tokens"),
    ("text.sentence_pairs([rows])", "there are 1 documents"),
    ("text.sentence_pairs([rows, rows], seed=-2)", "seed is -2"),
    ("text.WordDropout(text.Buckets(rows), 1.0)", "share is 1.0; it must be at least 0 and below 1"),
    ("text.WordDropout(text.Buckets(rows), NAN)", "share is nan"),
    ("text.WordDropout(text.Buckets(rows), 0.1, seed=-1)", "seed is -1"),
    ("text.MaskedTokens(text.Buckets(rows), 20, share=0)", "share is 0.0; it must lie between 0 and 1"),
    ("text.MaskedTokens(text.Buckets(rows), 7)", "vocab is 7; it counts 7 special tokens"),
    ("text.MaskedTokens(text.Buckets(rows), -3)", "vocab is -3"),
    ("tasks.dates(0)", "count is 0; it must be at least 1"),
    ("tasks.dates(-1)", "count is -1"),
    ("tasks.dates(10**12)", "more than this machine's memory; take less"),
    ("tasks.dates(2.5)", "count is 2.5; give a whole number"),
    ("tasks.dates(3, 'es')", "no source is called 'es'; there are: en, de, fr, zh"),
    ("tasks.dates(3, seed=-1)", "seed is -1; it must be from 0"),
    ("tasks.numbers(3, 'xx')", "no language is called 'xx'"),
    ("tasks.numbers(3, below=0)", "below is 0; it must lie between 1 and"),
    ("tasks.copy(3, (0, 4))", r"length is \(0, 4\); give the shortest, at least 1"),
    ("tasks.sort(3, (5, 4))", r"length is \(5, 4\)"),
    ("tasks.reverse(3, vocab=27)", "vocab is 27; it must lie between 1 and 26"),
    ("tasks.copy(3, 4)", "length is 4"),
    ("tasks.reviews(0)", "count is 0"),
    ("tasks.reviews(3, seed=-1)", "seed is -1"),
    (
        "Path('empty.txt').write_text(''); it = corpora.load('empty.txt')",
        "empty.txt is empty; there is nothing to learn from",
    ),
    ("list(text.Windows(ids, 3, 2))", "Windows has no last batch"),
    ("text.bpe(['abc'], 10**9)", "size is 1000000000"),
    ("text.MaskedTokens(torch.ones(2, 3).long(), words)", "batches are a tensor of shape .*; give batches of ids"),
    ("text.MaskedTokens([(torch.rand(2, 3),)], words)[0]", "ids is float32"),
    (
        "text.MaskedTokens([(torch.full((2, 3), 99),)], words)[0]",
        "batches\\[0\\] holds the id 99, which the vocabulary does not have",
    ),
    ("datasets.pairs('en', 'en')", "source and target are both 'en'"),
    ("text.Streams(ids, 3, 2)[-1]", "step is -1; it must be at least 0"),
    ("text.WordDropout([(torch.rand(2, 3),)], 0.5)[0]", "ids is float32"),
    ("text.sentence_pairs([[ids[:0], ids[:3]], [ids[:2]]])", "a sentence has no tokens"),
    ("text.sentence_pairs([[ids[:3], ids[:3]], [ids[:2]]], cls=-1)", "cls is -1"),
    ("text.Subwords(words.tokenizer, special={'msk': '[MASK]'})", "special names 'msk'; it can name"),
    ("text.Subwords(words.tokenizer, special={'mask': '<mask>'})", "which is none of the tokenizer's tokens"),
    ("words[5]", "token is 5; give a string"),
    ("words.save('')", "path is empty; give the name of a file"),
    ("text.pad([torch.ones(2, 7).long()])", "row 0 is \\[2, 7\\]; give each row as a tensor of ids, one axis"),
    ("text.pad([ids[:3], ids[None]])", "row 1 is \\[1, 50\\]; give each row"),
    ("text.add_special_tokens([ids[None]])", "row 0 is \\[1, 50\\]; give each row"),
    ("text.Buckets([ids[None], ids[None]])", "row 0 is \\[1, 50\\]; give each row"),
    ("text.Windows(ids, 7, 4)[1.5]", "step is 1.5; give a whole number"),
    ("text.Windows(ids, 7, 4)[True]", "step is True; give a whole number"),
    ("text.Windows(ids, 7, 4)[None]", "step is None; give a whole number"),
    ("text.GrowingWindows(ids, 7, 4, 9)[True]", "step is True"),
    ("text.RepeatedTokens(11, 7, 4)[1.5]", "step is 1.5"),
    ("text.Buckets(rows, tokens=20)[1.5]", "step is 1.5"),
    ("text.MaskedTokens(text.Windows(ids, 7, 4), 'bert')", "vocab is 'bert'; give how many tokens"),
    ("text.MaskedTokens(text.Windows, 11)", "batches is the class Windows; .*: an instance, Windows"),
    ("text.WordDropout(text.Windows, 0.1)", "batches is the class Windows"),
    ("corpora.split('a')", "a text of 1 characters cannot be split at 0.9"),
    ("corpora.split('abc', 0.1)", "a text of 3 characters cannot be split at 0.1"),
    ("text.Characters('abc').decode([True])", "True is no id"),
    ("text.Characters('abc').decode(torch.tensor([True, False]))", "ids are bools"),
    ("text.Bytes().decode([True])", "True is no id"),
    ("text.pad([ids[:1].to(torch.uint8), torch.tensor([300, 4])]).tolist()", "= \\[\\[0, 0\\], \\[300, 4\\]\\]"),
    ("text.pad([ids[:1].to(torch.uint8)], -100).dtype", "= torch.int64"),
    ("text.Buckets([ids[1:2].to(torch.int8), torch.tensor([300])], tokens=4)[0][0].max()", "= tensor\\(300\\)"),
    ("text.MaskedTokens(rows, 20)[0]", "batches\\[0\\] is a tensor of shape \\[2\\]; it must be a tuple of tensors"),
    ("text.WordDropout(rows, 0.5)[0]", "batches\\[0\\] is a tensor"),
    ("list(text.Buckets(rows, tokens=12))", "Buckets has no last batch"),
    ("list(text.WordDropout(text.Buckets(rows, tokens=12), 0.1))", "Dropped has no last batch"),
    ("list(text.MaskedTokens(text.Buckets(rows, tokens=12), 20))", "Masked has no last batch"),
    ("tasks.copy(2, (1, 10**9))", "at most 1,000,000"),
    ("text.Windows(ids.to(torch.uint16), 5, 2)[0][0].dtype", "= torch.int64"),
    ("next(text.in_order(ids.to(torch.uint32), 5, 2))[0].dtype", "= torch.int64"),
    ("text.Windows(ids, 7, 4)[torch.tensor(3)][0].shape", "= torch.Size\\(\\[4, 7\\]\\)"),
    (
        "text.MaskedTokens(text.Windows(ids, 7, 4), torch.tensor(20))",
        "vocab is a tensor of shape",
    ),
    ("text.sentence_pairs([ids[:2], ids[2:4]])", "a sentence is no tensor of ids"),
    ("text.Windows(ids, 5, 10**12)", "more than this machine's memory"),
    ("datasets.Ratings(ids[:2], torch.tensor([0, 5]), torch.ones(2), ['a'])", "movies hold 5, and there are 1 titles"),
    ("datasets.Ratings(ids[:2], ids[:1], torch.ones(2), ['a'])", "unequally many rows: users 2, movies 1"),
    ("datasets.Ratings(ids[:2], ids[:2] * 0, torch.full((2,), NAN), ['a'])", "values hold NaN"),
    ("datasets.Ratings(ids[:2] / 2, ids[:2] * 0, torch.ones(2), ['a'])", "users is float32; ids are whole numbers"),
    ("datasets.Ratings([0], [0], [1.0], ['a'])", "must be tensors"),
    ("datasets.Reviews(['a', 'b'], ids[:1])", "unequally many rows: texts 2, labels 1"),
    ("datasets.Reviews(['a'], torch.tensor([7]))", "each 1 \\(positive\\) or 0"),
]
