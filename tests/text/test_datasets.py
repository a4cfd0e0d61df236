"""Reviews, sentence pairs, ratings and bytes, from tiny files in the originals' layouts, and from the originals."""

import gc
import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from tfviz.suite.cli import main
from tfviz.text import corpora, datasets

REAL = Path(os.environ.get("TFVIZ_DATA", "nowhere"))  # before a test sets it
REVIEWS = {
    "train/pos/10_9.txt": "ten, good",
    "train/pos/2_10.txt": "two, né<br /><br />漢字",
    "train/neg/2_1.txt": "two, bad",
    "train/neg/10_3.txt": "ten, bad",
    "train/unsup/2_0.txt": "two, nobody knows",
    "train/pos/._2_10.txt": "dropped by a file manager",
    "test/pos/0_7.txt": "zero, good",
    "test/neg/1_4.txt": "one, bad",
    "test/neg/3_4.txt": "three, bad",
    "README": "read me",
}
MOVIES = """movieId,title,genres
9,"Never Rated, The (1999)",Drama
70,"Seven, ""Oh"" (2001)",Drama
4,Ŝtorm (2003),War
"""
RATINGS = "userId,movieId,rating,timestamp,,\n30,70,2.5,1,,\n8,70,5,2,,7.5\n8,4,0.5,3,,\n"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("TFVIZ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "data"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def folder(place, files):
    for name, content in files.items():
        write(place / name, content)


def tar(files, prefix="aclImdb/"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return buffer.getvalue()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Has a loopback server send files in place of those that a corpus publishes, and lists what it was asked for."""
    asked = []

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(self.path.rpartition("/")[2])

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=tmp_path / "www")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()

        def enter(name, contents):
            corpus = corpora.CORPORA[name]
            for file in corpus.files:
                write(tmp_path / "www" / file.path, contents[Path(file.path).name])
            files = tuple(
                replace(
                    file,
                    url=f"http://127.0.0.1:{server.server_port}/{file.path}",
                    sha256=hashlib.sha256(contents[Path(file.path).name]).hexdigest(),
                )
                for file in corpus.files
            )
            monkeypatch.setitem(corpora.CORPORA, name, replace(corpus, files=files))
            return asked

        yield enter
        server.shutdown()
        thread.join()
    gc.collect()


def captions():
    """Nine files with three lines each that name their split, language and line."""
    names = [f"{split}.{language}" for split in datasets.PAIR_SPLITS for language in datasets.LANGUAGES]
    return {f"{name}.gz": gzip.compress("".join(f"{name} {n}\n" for n in range(3)).encode()) for name in names}


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
def test_positive_and_negative_reviews_alternate_in_the_order_of_their_numbers(data, packed):
    if packed:
        write(data / "imdb/aclImdb_v1.tar.gz", tar(REVIEWS))
    else:
        folder(data / "imdb/aclImdb", REVIEWS)
    train, test = datasets.reviews(), datasets.reviews("test")
    assert train.texts == ["two, né\n\n漢字", "two, bad", "ten, good", "ten, bad"]
    assert train.labels.tolist() == [1, 0, 1, 0]
    assert train.labels.dtype == torch.long
    assert test.texts == ["zero, good", "one, bad", "three, bad"]
    assert test.labels.tolist() == [1, 0, 0]


def test_an_archive_may_begin_its_names_with_a_dot(data):
    write(data / "imdb/aclImdb_v1.tar.gz", tar(REVIEWS, "./aclImdb/"))
    assert datasets.reviews().labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
def test_another_layout_of_reviews_is_told_with_what_was_found(data, packed):
    files = {"train/pos/0_9.txt": "good", "train/pos/1_9.txt": "good", "train/negative/0_1.txt": "bad"}
    if packed:
        write(data / "imdb/aclImdb_v1.tar.gz", tar(files))
    else:
        folder(data / "imdb/aclImdb", files)
    with pytest.raises(ValueError, match="looked for") as error:
        datasets.reviews()
    for words in (str(data / "imdb/aclImdb"), "2 of pos and 0 of neg", "aclImdb/train/negative", "original archive"):
        assert words in str(error.value)


@pytest.mark.parametrize("prefix", ["", "reviews/", "aclImdb/aclImdb/"])
def test_reviews_one_folder_too_high_or_too_low(data, prefix):
    write(data / "imdb/aclImdb_v1.tar.gz", tar(REVIEWS, prefix))
    with pytest.raises(ValueError, match=f"0 of pos and 0 of neg.* {prefix}train/pos"):
        datasets.reviews()


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
@pytest.mark.parametrize("name", ["1.txt", "abc.txt", "3_9.TXT", "sub/2_2.txt"])
def test_a_review_that_would_be_left_out_is_named(data, packed, name):
    files = {**REVIEWS, f"train/neg/{name}": "bad"}
    if packed:
        write(data / "imdb/aclImdb_v1.tar.gz", tar(files))
    else:
        folder(data / "imdb/aclImdb", files)
    with pytest.raises(ValueError, match=rf"aclImdb/train/neg/{name} is not called ID_STARS\.txt"):
        datasets.reviews()
    assert len(datasets.reviews("test").texts) == 3


def test_an_empty_folder_of_reviews(data):
    (data / "imdb/aclImdb").mkdir(parents=True)
    with pytest.raises(ValueError, match="with files in them are: none"):
        datasets.reviews()


@pytest.mark.parametrize("share", [0.0, 0.4, 0.7, 0.99])
def test_a_truncated_archive_never_gives_fewer_reviews(data, share):
    names = [f"train/{kind}/{n}_{stars}.txt" for n in range(20) for kind, stars in (("pos", 8), ("neg", 2))]
    whole = tar({name: os.urandom(300).hex() for name in names})
    write(data / "imdb/aclImdb_v1.tar.gz", whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"aclImdb_v1\.tar\.gz is damaged.*delete it"):
        datasets.reviews()


def test_what_is_no_archive_is_told(data):
    write(data / "imdb/aclImdb_v1.tar.gz", "<html>not found</html>")
    with pytest.raises(ValueError, match="is damaged"):
        datasets.reviews()


def test_a_review_that_is_not_utf8_is_named(data):
    folder(data / "imdb/aclImdb", {"train/pos/0_9.txt": "né".encode("latin-1"), "train/neg/0_1.txt": "bad"})
    with pytest.raises(ValueError, match=r"train/pos/0_9\.txt is not UTF-8"):
        datasets.reviews()


def test_an_unknown_split_lists_those_there_are(data):
    with pytest.raises(LookupError, match="no split 'valid'; there are: train, test"):
        datasets.reviews("valid")
    with pytest.raises(LookupError, match="no split 'test'; there are: train, val, test_2016_flickr"):
        datasets.pairs("en", "de", "test")


def test_an_unknown_language_lists_those_there_are(data):
    for languages in (("cs", "en"), ("en", "cs")):
        with pytest.raises(LookupError, match="no language 'cs'; there are: en, de, fr"):
            datasets.pairs(*languages)


def test_pairs_are_source_and_target_of_the_split(data):
    folder(data / "multi30k", captions())
    source, target = datasets.pairs("fr", "en", "val")
    assert source == ["val.fr 0", "val.fr 1", "val.fr 2"]
    assert target == ["val.en 0", "val.en 1", "val.en 2"]


def test_two_unpacked_files_are_enough_for_a_pair(data):
    folder(data / "multi30k", {"train.en": "a cat\n", "train.de": "eine Katze\n"})
    assert datasets.pairs("en", "de") == (["a cat"], ["eine Katze"])
    assert corpora.verify("multi30k") == "partly"


def test_a_pair_fetches_its_two_files_and_the_corpus_the_rest(publish, tmp_path):
    asked = publish("multi30k", captions())
    assert corpora.verify("multi30k") == "absent"
    assert datasets.pairs("en", "de", "val")[1][2] == "val.de 2"
    assert asked == ["val.en.gz", "val.de.gz"]
    assert corpora.verify("multi30k") == "partly"
    places = corpora.fetch("multi30k")
    assert sorted(asked) == sorted(captions())
    assert places == corpora.paths("multi30k") == [tmp_path / "cache/multi30k" / path.name for path in places]
    assert corpora.verify("multi30k") == "ok"
    assert corpora.fetch("multi30k") == places
    assert len(asked) == 9


def test_one_file_of_many_in_a_local_folder_wins(publish, data):
    publish("multi30k", captions())
    own = write(data / "multi30k/val.fr.gz", gzip.compress(b"un\ndeux\ntrois\n"))
    assert datasets.pairs("en", "fr", "val")[1] == ["un", "deux", "trois"]
    corpora.fetch("multi30k")
    assert own in corpora.paths("multi30k")
    assert corpora.verify("multi30k") == "differs"


def test_a_file_that_the_corpus_lacks(data):
    with pytest.raises(LookupError, match=r"multi30k has no file val\.cs\.gz; it has: train\.en\.gz"):
        corpora.fetch("multi30k", "val.cs.gz")


def test_only_a_line_feed_ends_a_line(tmp_path):
    source = write(tmp_path / "a.en", "\ufeffone\u2028still one\r\ntwo\x85\x0b\x0cstill two\nthree")
    target = write(tmp_path / "a.de.gz", gzip.compress(b"eins\r\n zwei \ndrei\n"))
    expected = ["one\u2028still one", "two\x85\x0b\x0cstill two", "three"]
    assert datasets.parallel(source, str(target)) == (expected, ["eins", " zwei ", "drei"])


def test_files_of_unequal_length_are_told_with_both_counts(tmp_path):
    source, target = write(tmp_path / "a", "1\n2\n3\n"), write(tmp_path / "b", "1\n2\n")
    with pytest.raises(ValueError, match=r"a has 3 lines and .*b has 2;"):
        datasets.parallel(source, target)


@pytest.mark.parametrize(
    ("text", "line"), [("", 1), ("1\n\n3\n", 2), ("1\n2\n \t\n", 3), ("1\n2\n3\n\n", 4), ("1\r\n\r\n3", 2)]
)
@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_line_is_named_and_nothing_dropped(tmp_path, text, line, side):
    files = [write(tmp_path / "good", "1\n2\n3\n"), write(tmp_path / "bad", text)]
    with pytest.raises(ValueError, match=rf"bad, line {line}, is empty"):
        datasets.parallel(files[side], files[1 - side])


def test_a_damaged_gz_and_bytes_that_are_not_utf8(tmp_path):
    whole = gzip.compress(b"1\n2\n3\n" * 99)
    good = write(tmp_path / "good.gz", whole)
    for content in (whole[:-9], b"1\n2\n3\n", whole[:20] + b"\xff\xff" + whole[22:]):
        with pytest.raises(ValueError, match=r"bad\.gz is damaged"):
            datasets.parallel(good, write(tmp_path / "bad.gz", content))
    with pytest.raises(ValueError, match="latin is not UTF-8"):
        datasets.parallel(good, write(tmp_path / "latin", b"n\xe9\n"))


@pytest.mark.parametrize("form", ["files", "folder", "zip"])
def test_ratings_by_hand(data, form):
    files = {"movies.csv": MOVIES, "ratings.csv": "\ufeff" + RATINGS.replace("\n", "\r\n")}
    if form == "zip":
        members = {f"ml-latest-small/{name}": content for name, content in files.items()}
        write(data / "movielens/ml-latest-small.zip", zipped(members))
    else:
        folder(data / "movielens" / ("ml-latest-small" if form == "folder" else ""), files)
    found = datasets.ratings()
    assert found.users.tolist() == [1, 0, 0]
    assert found.movies.tolist() == [1, 1, 0]
    assert found.values.tolist() == [2.5, 5.0, 0.5]
    assert found.titles == ["Ŝtorm (2003)", 'Seven, "Oh" (2001)']
    assert found.genres == ["War", "Drama"] == found.split(0.5)[1].genres
    assert (found.users.dtype, found.movies.dtype, found.values.dtype) == (torch.long, torch.long, torch.float32)
    assert corpora.verify("movielens") == ("differs" if form == "zip" else "unpacked")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("8,70", "2 cells where the head has 6"),
        ("8,70,3", "3 cells where the head has 6"),
        ("", "0 cells"),
        ("x,70,3,1,,", "'x'"),
        ("8,70,,1,,", "could not convert"),
        ("8,70,3.25,1,,", "halves, not 3.25"),
        ("8,70,0,1,,", "halves, not 0"),
        ("8,70,5.5,1,,", "halves, not 5.5"),
        ("8,70,nan,1,,", "halves, not nan"),
        ("8,5,3,1,,", "movie 5 is not in"),
        ('8,70,"3"x,1', "expected after"),
    ],
)
def test_a_damaged_rating_is_named_with_its_line(data, row, reason):
    lines = RATINGS.splitlines()
    folder(data / "movielens", {"movies.csv": MOVIES, "ratings.csv": "\n".join([*lines[:2], row, *lines[2:]]) + "\n"})
    with pytest.raises(ValueError, match=r"ratings\.csv, line 3: ") as error:
        datasets.ratings()
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must be userId, movieId, rating, not nothing"),
        ("user;movie;rating\n", "not user;movie;rating"),
        ("userId,movieId,rating\n", "no row"),
    ],
)
def test_a_table_without_head_or_rows(data, text, reason):
    folder(data / "movielens", {"movies.csv": MOVIES, "ratings.csv": text})
    with pytest.raises(ValueError, match=reason):
        datasets.ratings()


def test_a_movie_that_stands_twice(data):
    folder(data / "movielens", {"movies.csv": MOVIES + "4,Other (2004),War\n", "ratings.csv": RATINGS})
    with pytest.raises(ValueError, match="movie 4 stands there twice"):
        datasets.ratings()


def test_an_open_quotation_mark_in_a_title(data):
    folder(data / "movielens", {"movies.csv": MOVIES + '5,"Open (2000),War\n', "ratings.csv": RATINGS})
    with pytest.raises(ValueError, match=r"movies\.csv, line 5: unexpected end"):
        datasets.ratings()


def test_a_split_has_every_rating_once_and_depends_on_the_seed_alone():
    rows = torch.arange(70)
    ratings = datasets.Ratings(rows, rows + 100, rows / 2, ["a"] * 170)
    train, held = ratings.split(0.9, seed=5)
    assert (len(train.users), len(held.users)) == (63, 7)
    assert sorted([*train.users.tolist(), *held.users.tolist()]) == rows.tolist()
    for part in (train, held):
        assert torch.equal(part.movies, part.users + 100)
        assert torch.equal(part.values, part.users / 2)
        assert part.titles == ratings.titles
    torch.manual_seed(1)
    assert torch.equal(ratings.split(0.9, seed=5)[1].users, held.users)
    assert not torch.equal(ratings.split(0.9, seed=6)[1].users, held.users)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0, float("nan"), float("inf"), 0.01])
def test_a_share_that_leaves_one_side_empty(share):
    rows = torch.arange(7)
    with pytest.raises(ValueError, match=r"of 7 ratings; it must leave"):
        datasets.Ratings(rows, rows, rows / 2, ["a"] * 7).split(share)


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
def test_bytes_are_split_90_5_5_and_not_decoded(data, packed):
    content = bytes(range(200)) + b"\r\n\xff"  # 203 bytes: cuts at 182 and 192
    if packed:
        write(data / "enwik8/enwik8.zip", zipped({"enwik8": content}))
    else:
        write(data / "enwik8/enwik8", content)
    train, valid, test = datasets.enwik8()
    assert (len(train), len(valid), len(test)) == (182, 10, 11)
    assert torch.cat([train, valid, test]).numpy().tobytes() == content
    assert train.dtype == valid.dtype == test.dtype == torch.uint8
    train[0] = 7  # the memory is the reader's own
    assert datasets.enwik8()[0][0] == 0


def test_enwik8_as_text(data):
    write(data / "enwik8/enwik8.zip", zipped({"enwik8": "né 漢字"}))
    assert corpora.load("enwik8") == "né 漢字"
    write(data / "enwik8/enwik8", b"unpacked wins, n\xe9")
    with pytest.raises(ValueError, match="enwik8 is not UTF-8"):
        corpora.load("enwik8")


def test_too_few_bytes_to_split(data):
    write(data / "enwik8/enwik8", b"1234567890123456789")
    with pytest.raises(ValueError, match="has 19 bytes"):
        datasets.enwik8()


def test_a_zip_without_the_member_lists_what_it_holds(data):
    write(data / "enwik8/enwik8.zip", zipped({"enwik9": "text", "b": "text"}))
    with pytest.raises(ValueError, match=r"enwik8\.zip has no member enwik8; it holds: enwik9, b"):
        datasets.enwik8()


def test_a_damaged_zip(data):
    whole = zipped({"enwik8": os.urandom(500)})
    for content in (whole[:300], whole[:100] + b"???" + whole[103:], b""):
        write(data / "enwik8/enwik8.zip", content)
        for read in (datasets.enwik8, partial(corpora.load, "enwik8")):
            with pytest.raises(ValueError, match=r"enwik8\.zip.* is damaged"):
                read()


def test_zips_are_fetched_and_read(publish, tmp_path):
    publish("enwik8", {"enwik8.zip": zipped({"enwik8": bytes(100)})})
    members = {"ml-latest-small/README.txt": "-", "ml-latest-small/ratings.csv": RATINGS}
    publish("movielens", {"ml-latest-small.zip": zipped({**members, "ml-latest-small/movies.csv": MOVIES})})
    assert list(map(len, datasets.enwik8())) == [90, 5, 5]
    assert datasets.ratings().movies.tolist() == [1, 1, 0]
    assert corpora.verify("enwik8") == corpora.verify("movielens") == "ok"
    assert corpora.paths("enwik8") == [tmp_path / "cache/enwik8/enwik8.zip"]


def test_what_is_not_one_text_says_what_reads_it(data):
    for name in ("imdb", "multi30k", "movielens"):
        with pytest.raises(ValueError, match=rf"{name} is not one text; read it with tfviz\.text\.datasets\.") as error:
            corpora.load(name)
        assert hasattr(datasets, str(error.value).rpartition(".")[2].removesuffix("()"))


def test_the_command_shows_and_fetches_every_file(publish, tmp_path):
    publish("multi30k", captions())
    run = partial(CliRunner().invoke, main)
    places = [str(tmp_path / "cache" / file.path) for file in corpora.CORPORA["multi30k"].files]
    assert run(["data", "path", "multi30k"]).output.split() == places
    assert run(["data", "fetch", "multi30k"]).output.split() == places
    assert run(["data", "verify", "multi30k"]).output.split() == ["multi30k", "ok"]
    assert [line.split()[:2] for line in run(["data", "list"]).output.splitlines()] == [
        [name, {"pydoc": "embedded", "multi30k": "ok"}.get(name, "absent")] for name in corpora.CORPORA
    ]


def test_every_published_file_has_a_place_an_address_and_a_sum():
    files = [file for corpus in corpora.CORPORA.values() for file in corpus.files]
    assert len({file.path for file in files}) == len({file.sha256 for file in files}) == len(files) == 13
    for file in files:
        assert file.url.rpartition("/")[2] == Path(file.path).name
        assert len(bytes.fromhex(file.sha256)) == 32


def real(name):
    there = (REAL / name).is_dir()
    return pytest.mark.skipif(not there, reason=f"TFVIZ_DATA names no folder with the original {name}")


@real("imdb")
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_original_reviews(monkeypatch, split):
    monkeypatch.setenv("TFVIZ_DATA", str(REAL))
    found = datasets.reviews(split)
    assert len(found.texts) == 25_000
    assert torch.equal(found.labels, torch.tensor([1, 0]).repeat(12_500))
    assert all(text.strip() and "<br" not in text for text in found.texts)
    first = {"train": "Bromwell High is a cartoon comedy.", "test": "I went and saw this movie last night"}
    assert found.texts[0].startswith(first[split])


@real("multi30k")
@pytest.mark.parametrize(("split", "count"), [("train", 29_000), ("val", 1_014), ("test_2016_flickr", 1_000)])
def test_the_original_pairs(monkeypatch, split, count):
    monkeypatch.setenv("TFVIZ_DATA", str(REAL))
    english, german = datasets.pairs("en", "de", split)
    french = datasets.pairs("fr", "en", split)[0]
    assert len(english) == len(german) == len(french) == count
    assert split != "train" or german[0] == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."


@real("movielens")
def test_the_original_ratings(monkeypatch):
    monkeypatch.setenv("TFVIZ_DATA", str(REAL))
    found = datasets.ratings()
    counts = (len(found.values), int(found.users.max()) + 1, int(found.movies.max()) + 1)
    # the editions of 2016 and of 2018
    assert counts in {(100_004, 671, 9_066), (100_836, 610, 9_724)}
    assert len(found.titles) == counts[2]
    assert found.titles[0] == "Toy Story (1995)"
    assert sum(map(len, (part.users for part in found.split()))) == counts[0]
