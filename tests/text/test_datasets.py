"""Reviews, sentence pairs, ratings and bytes, read from small files in the original layouts and from the originals."""

import gzip
import os
import tarfile
from pathlib import Path

import pytest
import torch
from packing import folder, tar, write, zipped

from tfviz.text import corpora, datasets

REAL = Path(os.environ.get("TFVIZ_DATA", "nowhere"))  # before the fixture `data` sets it
pytest_plugins = ["packing"]
pytestmark = pytest.mark.usefixtures("data")
REVIEWS = {
    "aclImdb/train/pos/10_9.txt": "ten, good",
    "aclImdb/train/pos/2_10.txt": "two, né<br /><br />漢字",
    "aclImdb/train/neg/2_1.txt": "two, bad",
    "aclImdb/train/neg/10_3.txt": "ten, bad",
    "aclImdb/train/unsup/2_0.txt": "two, nobody knows",
    "aclImdb/train/pos/._2_10.txt": "dropped by a file manager",
    "aclImdb/test/pos/0_7.txt": "zero, good",
    "aclImdb/test/neg/1_4.txt": "one, bad",
    "aclImdb/test/neg/3_4.txt": "three, bad",
    "aclImdb/README": "read me",
}
MOVIES = """movieId,title,genres
9,"Never Rated, The (1999)",Drama
70,"Seven, ""Oh"" (2001)",Drama
4,Ŝtorm (2003),War
"""
RATINGS = "userId,movieId,rating,timestamp,,\n30,70,2.5,1,,\n8,70,5,2,,7.5\n8,4,0.5,3,,\n"
packed = pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])


def put_reviews(data, files, packed=True):
    if packed:
        write(data / "imdb/aclImdb_v1.tar.gz", tar(files))
    else:
        folder(data / "imdb", files)


def put_ratings(data, movies=MOVIES, ratings=RATINGS):
    folder(data / "movielens", {"movies.csv": movies, "ratings.csv": ratings})


@packed
def test_reviews_alternate_labels_in_numeric_order(data, packed):
    put_reviews(data, REVIEWS, packed)
    train, test = datasets.reviews(), datasets.reviews("test")
    assert train.texts == ["two, né\n\n漢字", "two, bad", "ten, good", "ten, bad"]
    assert train.labels.tolist() == [1, 0, 1, 0]
    assert train.labels.dtype == torch.long
    assert test.texts == ["zero, good", "one, bad", "three, bad"]
    assert test.labels.tolist() == [1, 0, 0]


def test_reviews_accept_archive_names_with_leading_dot(data):
    put_reviews(data, {f"./{name}": content for name, content in REVIEWS.items()})
    assert datasets.reviews().labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("layout", "found"),
    [
        (lambda name: name.replace("neg", "negative"), "2 of pos and 0 of neg.*aclImdb/train/negative"),
        (lambda name: name.removeprefix("aclImdb/"), "0 of pos and 0 of neg.* train/pos"),
        (lambda name: f"aclImdb/{name}", "0 of pos and 0 of neg.* aclImdb/aclImdb/train/pos"),
    ],
)
def test_reviews_reject_another_layout(data, layout, found):
    put_reviews(data, {layout(name): content for name, content in REVIEWS.items()})
    with pytest.raises(ValueError, match=f"aclImdb_v1.tar.gz: looked for .*{found}.*original archive"):
        datasets.reviews()


def test_reviews_reject_empty_folder(data):
    (data / "imdb/aclImdb").mkdir(parents=True)
    with pytest.raises(ValueError, match="with files in them are: none"):
        datasets.reviews()


@packed
@pytest.mark.parametrize("name", ["1.txt", "3_9.TXT", "sub/2_2.txt"])
def test_reviews_reject_misnamed_files(data, packed, name):
    put_reviews(data, {**REVIEWS, f"aclImdb/train/neg/{name}": "bad"}, packed)
    with pytest.raises(ValueError, match=rf"aclImdb/train/neg/{name} is not called ID_STARS\.txt"):
        datasets.reviews()
    assert len(datasets.reviews("test").texts) == 3


@pytest.mark.parametrize("share", [0.0, 0.4, 0.7, 0.99])
def test_reviews_reject_truncated_archive(data, share):
    names = [f"aclImdb/train/{kind}/{n}_{stars}.txt" for n in range(20) for kind, stars in (("pos", 8), ("neg", 2))]
    whole = tar({name: os.urandom(300).hex() for name in names})
    write(data / "imdb/aclImdb_v1.tar.gz", whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"aclImdb_v1\.tar\.gz is damaged.*delete it"):
        datasets.reviews()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_reviews_reject_links_and_devices_in_archive(data, kind):
    write(data / "imdb/aclImdb_v1.tar.gz", tar({}, links=[("aclImdb/train/pos/1_9.txt", kind)]))
    with pytest.raises(ValueError, match=r"pos/1_9\.txt is a link or a device"):
        datasets.reviews()


def test_reviews_reject_non_utf8_files(data):
    put_reviews(data, {**REVIEWS, "aclImdb/train/pos/0_9.txt": "né".encode("latin-1")}, packed=False)
    with pytest.raises(ValueError, match=r"train/pos/0_9\.txt is not UTF-8"):
        datasets.reviews()


def test_pairs_read_two_unpacked_files(data):
    folder(data / "multi30k", {"train.en": "a cat\n", "train.de": "eine Katze\n"})
    assert datasets.pairs("en", "de") == (["a cat"], ["eine Katze"])
    assert datasets.pairs("de", "en") == (["eine Katze"], ["a cat"])
    assert corpora.verify("multi30k") == "partly"


def test_parallel_splits_only_at_line_feeds(tmp_path):
    source = write(tmp_path / "a.en", "\ufeffone\u2028still one\r\ntwo\x85\x0b\x0cstill two\nthree")
    target = write(tmp_path / "a.de.gz", gzip.compress(b"eins\r\n zwei \ndrei\n"))
    expected = ["one\u2028still one", "two\x85\x0b\x0cstill two", "three"]
    assert datasets.parallel(source, str(target)) == (expected, ["eins", " zwei ", "drei"])


def test_parallel_rejects_unequal_line_counts(tmp_path):
    source, target = write(tmp_path / "a", "1\n2\n3\n"), write(tmp_path / "b", "1\n2\n")
    with pytest.raises(ValueError, match=r"a has 3 lines and .*b has 2;"):
        datasets.parallel(source, target)


@pytest.mark.parametrize(("text", "line"), [("", 1), ("1\n2\n \t\n", 3), ("1\n2\n3\n\n", 4), ("1\r\n\r\n3", 2)])
@pytest.mark.parametrize("side", [0, 1])
def test_parallel_rejects_empty_lines(tmp_path, text, line, side):
    files = [write(tmp_path / "good", "1\n2\n3\n"), write(tmp_path / "bad", text)]
    with pytest.raises(ValueError, match=rf"bad, line {line}, is empty"):
        datasets.parallel(files[side], files[1 - side])


def test_parallel_rejects_damaged_gzip(tmp_path):
    whole = gzip.compress(b"1\n2\n3\n" * 99)
    good = write(tmp_path / "good.gz", whole)
    for content in (whole[:-9], b"1\n2\n3\n", whole[:20] + b"\xff\xff" + whole[22:]):
        with pytest.raises(ValueError, match=r"bad\.gz is damaged"):
            datasets.parallel(good, write(tmp_path / "bad.gz", content))


@pytest.mark.parametrize("form", ["files", "folder", "zip"])
def test_ratings_match_expected_values(data, form):
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


ROWS = ("8,70", "8,70,3", "x,70,3,1,,", "8,70,,1,,", "8,70,3.25,1,,", "8,70,0,1,,", "8,70,5.5,1,,", "8,70,nan,1,,")
UNLISTED, UNQUOTED = "8,5,3,1,,", '8,70,"3"x,1'


@pytest.mark.parametrize("row", [*ROWS, UNLISTED, UNQUOTED])
def test_ratings_reject_invalid_rows(data, row):
    lines = RATINGS.splitlines()
    put_ratings(data, ratings="\n".join([*lines[:2], row, *lines[2:]]) + "\n")
    with pytest.raises(ValueError, match=r"ratings\.csv, line 3: "):
        datasets.ratings()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"ratings": ""}, "it has no column movieId, rating, userId"),
        ({"ratings": "user;movie;rating\n"}, "it has no column"),
        ({"ratings": "userId,movieId,rating\n"}, "there is no row"),
        ({"movies": MOVIES + "4,Other (2004),War\n"}, "movie 4 occurs 2 times"),
        ({"movies": MOVIES + '5,"Open (2000),War\n'}, r"movies\.csv, line 5: unexpected end"),
        ({"ratings": RATINGS + "8,4,5,4,,\n"}, r"user and movie \(8, 4\) occurs 2 times"),
    ],
)
def test_ratings_reject_incomplete_or_inconsistent_tables(data, files, reason):
    put_ratings(data, **files)
    with pytest.raises(ValueError, match=reason):
        datasets.ratings()


def test_ratings_split_is_complete_and_deterministic():
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


@packed
def test_enwik8_is_split_90_5_5_without_decoding(data, packed):
    content = bytes(range(200)) + b"\r\n\xff"  # 203 bytes: cuts at 182 and 192
    write(
        data / ("enwik8/enwik8.zip" if packed else "enwik8/enwik8"), zipped({"enwik8": content}) if packed else content
    )
    train, valid, test = datasets.enwik8()
    assert (len(train), len(valid), len(test)) == (182, 10, 11)
    assert torch.cat([train, valid, test]).numpy().tobytes() == content
    assert train.dtype == valid.dtype == test.dtype == torch.uint8
    train[0] = 7  # the memory is the reader's own
    assert datasets.enwik8()[0][0] == 0
    with pytest.raises(ValueError, match="enwik8 is not UTF-8"):
        corpora.load("enwik8")


def requires_original(name):
    there = (REAL / name).is_dir()
    return pytest.mark.skipif(not there, reason=f"TFVIZ_DATA names no folder with the original {name}")


@requires_original("imdb")
@pytest.mark.parametrize("split", ["train", "test"])
def test_reviews_read_the_original_corpus(monkeypatch, split):
    monkeypatch.setenv("TFVIZ_DATA", str(REAL))
    found = datasets.reviews(split)
    assert len(found.texts) == 25_000
    assert torch.equal(found.labels, torch.tensor([1, 0]).repeat(12_500))
    assert all(text.strip() and "<br" not in text for text in found.texts)
    first = {"train": "Bromwell High is a cartoon comedy.", "test": "I went and saw this movie last night"}
    assert found.texts[0].startswith(first[split])


@requires_original("multi30k")
@pytest.mark.parametrize(("split", "count"), [("train", 29_000), ("val", 1_014), ("test_2016_flickr", 1_000)])
def test_pairs_read_the_original_corpus(monkeypatch, split, count):
    monkeypatch.setenv("TFVIZ_DATA", str(REAL))
    english, german = datasets.pairs("en", "de", split)
    french = datasets.pairs("fr", "en", split)[0]
    assert len(english) == len(german) == len(french) == count
    assert split != "train" or german[0] == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."


@requires_original("movielens")
def test_ratings_read_the_original_corpus(monkeypatch):
    monkeypatch.setenv("TFVIZ_DATA", str(REAL))
    found = datasets.ratings()
    counts = (len(found.values), int(found.users.max()) + 1, int(found.movies.max()) + 1)
    # the editions of 2016 and of 2018
    assert counts in {(100_004, 671, 9_066), (100_836, 610, 9_724)}
    assert len(found.titles) == counts[2]
    assert found.titles[0] == "Toy Story (1995)"
    assert sum(map(len, (part.users for part in found.split()))) == counts[0]
