"""Files, archives and downloads that never end, are no files, lead elsewhere, or hold no UTF-8."""

import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
import zipfile

import pytest

from tfviz.text import archives, corpora, datasets

LIMIT = 5000


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("TFVIZ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "data"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(archives, "UNPACKED", LIMIT)


class Endless(http.server.BaseHTTPRequestHandler):
    """Sends zeros for as long as somebody listens."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(bytes(4096))
                self.server.sent += 4096
        except OSError:
            self.server.left.set()

    def log_message(self, *args):
        pass


@pytest.fixture
def endless():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        server.sent, server.left = 0, threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_download_that_never_stops_is_stopped(endless, tmp_path, monkeypatch):
    url, most = f"http://127.0.0.1:{endless.server_port}/zeros", 300_000
    file = corpora.File("tiny/input.txt", url, hashlib.sha256(b"").hexdigest(), most=most)
    monkeypatch.setitem(corpora.CORPORA, "tiny", corpora.Corpus("tiny", "", "", "", (file,)))
    with pytest.raises(ValueError, match="larger than 300,000 bytes, and was stopped there; to go without it") as error:
        corpora.load("tiny")
    error.value.__cause__.__traceback__ = None  # which holds the connection
    del error
    assert endless.left.wait(20)
    assert endless.sent < 100 * most
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_every_file_of_the_catalogue_has_a_limit_above_its_size():
    sizes = {"input.txt": 1_115_394, "train.de.gz": 637_044, "enwik8.zip": 36_445_475, "ml-latest-small.zip": 978_202}
    sizes["aclImdb_v1.tar.gz"] = 84_125_825
    files = {file.path.rpartition("/")[2]: file.most for corpus in corpora.CORPORA.values() for file in corpus.files}
    assert all(size < files.pop(name) < 8 * size for name, size in sizes.items())
    assert set(files.values()) == {5_000_000}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def tar(*entries):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as whole:
        for name, content in entries:
            entry = tarfile.TarInfo(f"aclImdb/train/{name}")
            entry.size = len(content)
            whole.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def test_what_unpacks_without_end_is_not_read_on(small, data, tmp_path):
    stretched = write(tmp_path / "a.gz", gzip.compress(bytes(100 * LIMIT)))
    with pytest.raises(ValueError, match=r"a.gz unpacks to more than 5,000 bytes"):
        datasets.parallel(stretched, stretched)
    write(data / "imdb/aclImdb_v1.tar.gz", tar(("pos/1_9.txt", b"a"), ("neg/1_1.txt", bytes(100 * LIMIT))))
    with pytest.raises(ValueError, match=r"tar.gz unpacks to more than 5,000 bytes"):
        datasets.reviews()
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w", zipfile.ZIP_DEFLATED) as whole:
        whole.writestr("enwik8", bytes(LIMIT + 1))
    write(data / "enwik8/enwik8.zip", (tmp_path / "enwik8.zip").read_bytes())
    with pytest.raises(ValueError, match=r"enwik8 unpacks to more than 5,000 bytes"):
        datasets.enwik8()


def test_up_to_the_limit_all_is_read(small, tmp_path):
    lines = b"abcd\n" * (LIMIT // 5)
    assert len(datasets.parallel(*[write(tmp_path / "a.gz", gzip.compress(lines))] * 2)[0]) == LIMIT // 5


def test_ten_thousand_empty_files_are_too_many_for_a_small_limit(small, data):
    write(data / "imdb/aclImdb_v1.tar.gz", tar(*((f"pos/{n}_9.txt", b"") for n in range(100))))
    with pytest.raises(ValueError, match="unpacks to more than"):
        datasets.reviews()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_an_archive_are_not_followed(data, kind):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as whole:
        entry = tarfile.TarInfo("aclImdb/train/pos/1_9.txt")
        entry.type, entry.linkname = kind, "../../../secret"
        whole.addfile(entry)
    write(data / "imdb/aclImdb_v1.tar.gz", packed.getvalue())
    with pytest.raises(ValueError, match=r"pos/1_9\.txt is a link, or no file; pack the files themselves"):
        datasets.reviews()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_is_no_text(tmp_path, data, make):
    make(tmp_path / "pipe")
    (data / "enwik8").mkdir()
    (data / "shakespeare").mkdir()
    make(data / "enwik8" / "enwik8")
    make(data / "shakespeare" / "input.txt")
    with pytest.raises(LookupError, match="no corpus and no file is called"):
        corpora.load(str(tmp_path / "pipe"))
    with pytest.raises(FileNotFoundError, match=r"there is no file .*pipe"):
        datasets.parallel(tmp_path / "pipe", tmp_path / "pipe")
    assert corpora.verify("shakespeare") == "absent"
    assert corpora.verify("enwik8") in ("absent", "unpacked")


def test_text_that_is_not_utf8(tmp_path):
    for name, content in {
        "long": "né, né".encode("utf-16-le"),
        "marked": "né".encode("utf-16"),
        "nul": bytes(30),
    }.items():
        with pytest.raises(ValueError, match=rf"{name} is not UTF-8 text: .*; save it as UTF-8"):
            corpora.load(str(write(tmp_path / name, content)))


def test_a_byte_order_mark_is_no_letter_and_every_line_ends_alike(tmp_path):
    assert corpora.load(str(write(tmp_path / "a", b"\xef\xbb\xbfone\r\ntwo\rthree\n"))) == "one\ntwo\nthree\n"
    assert corpora.load(str(write(tmp_path / "b.gz", gzip.compress("né".encode())))) == "né"


def test_a_data_folder_that_is_none_is_named_where_it_is_used(tmp_path, monkeypatch):
    for wrong in (tmp_path / "typo", write(tmp_path / "file", b"x")):
        monkeypatch.setenv("TFVIZ_DATA", str(wrong))
        for use in (corpora.load, corpora.fetch, corpora.paths, corpora.verify):
            with pytest.raises(ValueError, match=f"TFVIZ_DATA is '{wrong}', which is no folder"):
                use("shakespeare")
    assert corpora.load("pydoc")


def test_a_home_in_a_path_is_the_reader_s(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "own.txt", b"mine")
    assert corpora.load("~/own.txt") == "mine"
    monkeypatch.delenv("HOME")
    with pytest.raises(LookupError):
        corpora.load("~nobody/own.txt")


def test_a_review_that_stands_twice_or_says_two_things(data):
    whole = {"pos/1_9.txt": b"good", "neg/1_1.txt": b"bad"}
    for name, says in {"pos/1_8.txt": "have one number", "pos/3_4.txt": "has 4 stars and stands in pos"}.items():
        write(data / "imdb/aclImdb_v1.tar.gz", tar(*{**whole, name: b"x"}.items()))
        with pytest.raises(ValueError, match=says):
            datasets.reviews()
    write(data / "imdb/aclImdb_v1.tar.gz", tar(*whole.items()))
    assert datasets.reviews().texts == ["good", "bad"]


def test_a_film_that_somebody_rates_twice(data):
    write(data / "movielens/movies.csv", b"movieId,title\n4,A\n7,B\n")
    write(data / "movielens/ratings.csv", b"userId,movieId,rating\n3,4,1\n3,7,2\n3,4,5\n")
    with pytest.raises(ValueError, match=r"ratings.csv: user 3 rates movie 4 2 times; leave one of them"):
        datasets.ratings()


def test_a_zip_that_asks_for_a_password(data):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as whole:
        whole.writestr("enwik8", "a" * 40)
    content = bytearray(packed.getvalue())
    for place in (6, content.index(b"PK\x01\x02") + 8):  # the flag "encrypted", in both heads
        content[place] |= 1
    write(data / "enwik8/enwik8.zip", bytes(content))
    with pytest.raises(ValueError, match=r"is damaged: .*encrypted"):
        datasets.enwik8()
