"""Corpora: local folder, cache and download, and damaged, missing or non-text files."""

import gzip
import os
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from operating_systems import make_pipe
from packing import write, zipped

from tfviz.lessons.cli import main
from tfviz.text import corpora, datasets

pytest_plugins = ["packing"]
pytestmark = [
    pytest.mark.usefixtures("data"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # of a refused download; see `publish`
]
TEXT = "né 漢字 👩‍👧\n\t\0"
SHAKESPEARE = {"input.txt": TEXT}


def captions():
    """Nine files with three lines each that name their split, language and line."""
    names = [f"{split}.{language}" for split in datasets.PAIR_SPLITS for language in datasets.LANGUAGES]
    return {f"{name}.gz": gzip.compress("".join(f"{name} {n}\n" for n in range(3)).encode()) for name in names}


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_pydoc_needs_no_network():
    assert len(corpora.load("pydoc")) > 400_000
    assert corpora.verify("pydoc") == "embedded"
    with pytest.raises(LookupError, match="has no file"):
        corpora.paths("pydoc")


def test_download_is_cached(publish, tmp_path):
    requested = publish("shakespeare", SHAKESPEARE)
    assert corpora.verify("shakespeare") == "absent"
    assert corpora.load("shakespeare") == corpora.load("shakespeare") == TEXT
    assert requested == ["input.txt"]
    assert files(tmp_path / "cache") == [tmp_path / "cache/shakespeare/input.txt"] == corpora.paths("shakespeare")
    assert corpora.verify("shakespeare") == "ok"


def test_wrong_hash_raises_and_leaves_no_file(publish, tmp_path):
    publish("shakespeare", SHAKESPEARE, sha256="0" * 64)
    with pytest.raises(ValueError, match="is not shakespeare") as error:
        corpora.load("shakespeare")
    assert str(tmp_path / "cache/shakespeare/input.txt") in str(error.value)
    assert files(tmp_path / "cache") == []


@pytest.mark.parametrize("broken", ["closed port", "not found"])
def test_failed_download_error_names_the_file_path(publish, tmp_path, monkeypatch, broken):
    publish("shakespeare", {})
    if broken == "closed port":
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/input.txt"
        corpus = corpora.CORPORA["shakespeare"]
        monkeypatch.setitem(corpora.CORPORA, "shakespeare", replace(corpus, files=(replace(corpus.files[0], url=url),)))
    with pytest.raises(ConnectionError, match="could not fetch shakespeare") as error:
        corpora.load("shakespeare")
    assert str(tmp_path / "cache/shakespeare/input.txt") in str(error.value)
    assert files(tmp_path) == []


def test_pairs_fetch_only_their_two_files(publish, tmp_path):
    requested = publish("multi30k", captions())
    assert corpora.verify("multi30k") == "absent"
    assert datasets.pairs("en", "de", "val")[1][2] == "val.de 2"
    assert requested == ["val.en.gz", "val.de.gz"]
    assert corpora.verify("multi30k") == "partly"
    paths = corpora.fetch("multi30k")
    assert sorted(requested) == sorted(captions())
    assert paths == corpora.paths("multi30k") == [tmp_path / "cache/multi30k" / path.name for path in paths]
    assert corpora.verify("multi30k") == "ok"
    assert (corpora.fetch("multi30k"), len(requested)) == (paths, 9)


def test_local_file_takes_precedence(publish, data):
    publish("multi30k", captions())
    own = write(data / "multi30k/val.fr.gz", gzip.compress(b"un\ndeux\ntrois\n"))
    assert datasets.pairs("en", "fr", "val")[1] == ["un", "deux", "trois"]
    corpora.fetch("multi30k")
    assert own in corpora.paths("multi30k")
    assert corpora.verify("multi30k") == "differs"


def test_zip_is_downloaded_and_read_without_unpacking(publish, tmp_path):
    publish("enwik8", {"enwik8.zip": zipped({"enwik8": "né 漢字 and more bytes"})})
    assert corpora.load("enwik8") == "né 漢字 and more bytes"
    assert sum(map(len, datasets.enwik8())) == len("né 漢字 and more bytes".encode())
    assert corpora.verify("enwik8") == "ok"
    assert files(tmp_path / "cache") == corpora.paths("enwik8") == [tmp_path / "cache/enwik8/enwik8.zip"]


def test_unpacked_file_takes_precedence_over_archive(data):
    write(data / "enwik8/enwik8.zip", zipped({"enwik8": "packed"}))
    assert corpora.verify("enwik8") == "differs"
    write(data / "enwik8/enwik8", "unpacked")
    assert (corpora.load("enwik8"), corpora.verify("enwik8")) == ("unpacked", "unpacked")


def test_zip_without_the_member_raises_with_its_contents(data):
    write(data / "enwik8/enwik8.zip", zipped({"enwik9": "text", "b": "text"}))
    with pytest.raises(ValueError, match=r"enwik8\.zip has no member enwik8; it holds: enwik9, b"):
        datasets.enwik8()


def test_damaged_or_encrypted_zip_raises(data):
    whole = zipped({"enwik8": os.urandom(500)})
    locked = bytearray(whole)
    for offset in (6, whole.index(b"PK\x01\x02") + 8):  # the flag "encrypted", in both heads
        locked[offset] |= 1
    for content in (whole[:300], whole[:100] + b"???" + whole[103:], b"", bytes(locked)):
        write(data / "enwik8/enwik8.zip", content)
        for read in (datasets.enwik8, partial(corpora.load, "enwik8")):
            with pytest.raises(ValueError, match=r"enwik8.* is damaged"):
                read()


def test_load_reads_own_utf8_files(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "own.txt", TEXT)
    assert corpora.load(str(tmp_path / "own.txt")) == corpora.load("~/own.txt") == TEXT
    assert corpora.load(str(write(tmp_path / "a", b"\xef\xbb\xbfone\r\ntwo\rthree\n"))) == "one\ntwo\nthree\n"
    assert corpora.load(str(write(tmp_path / "b.gz", gzip.compress("né".encode())))) == "né"


def test_own_text_is_looked_up_in_the_data_folder(data, tmp_path, monkeypatch):
    write(data / "novel.txt", TEXT)
    write(data / "deep" / "novel.txt", f"{TEXT} below")
    monkeypatch.chdir(tmp_path)
    assert corpora.load("novel.txt") == TEXT
    assert corpora.load("deep/novel.txt") == f"{TEXT} below"
    write(tmp_path / "novel.txt", "here")
    assert corpora.load("novel.txt") == "here"  # the current folder goes first
    with pytest.raises(LookupError, match=r"no corpus and no file is called 'other\.txt'"):
        corpora.load("other.txt")


def test_absent_file_may_be_put_where_paths_says(data):
    (path,) = corpora.paths("shakespeare")
    assert path == data / "shakespeare" / "input.txt"
    write(path, TEXT)
    assert corpora.load("shakespeare") == TEXT


@pytest.mark.parametrize("content", ["né".encode("latin-1"), "né, né".encode("utf-16"), "ab, ab".encode("utf-16-le")])
def test_load_rejects_other_encodings(tmp_path, content):
    with pytest.raises(ValueError, match=r"own is not UTF-8 text: .*; save it as UTF-8"):
        corpora.load(str(write(tmp_path / "own", content)))


@pytest.mark.parametrize("make", [make_pipe, os.mkdir])
def test_pipes_and_folders_raise(tmp_path, data, make):
    for path in ("own", "data/shakespeare/input.txt"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        make(tmp_path / path)
    with pytest.raises(LookupError, match="no corpus and no file is called"):
        corpora.load(str(tmp_path / "own"))
    with pytest.raises(FileNotFoundError, match=r"there is no file .*own"):
        datasets.parallel(tmp_path / "own", tmp_path / "own")
    assert corpora.verify("shakespeare") == "absent"


def test_missing_data_folder_raises(tmp_path, monkeypatch):
    monkeypatch.setenv("TFVIZ_DATA", str(tmp_path / "typo"))
    for use in (corpora.load, corpora.fetch, corpora.paths, corpora.verify):
        with pytest.raises(ValueError, match=r"TFVIZ_DATA is .*typo', which is not a folder"):
            use("shakespeare")
    assert corpora.load("pydoc")
    assert corpora.load(str(write(tmp_path / "own.txt", TEXT))) == TEXT


@pytest.mark.parametrize("name", ["imdb", "multi30k", "movielens"])
def test_load_error_names_the_dataset_reader(name):
    with pytest.raises(ValueError, match=rf"{name} is not one text; read it with tfviz\.text\.datasets\.") as error:
        corpora.load(name)
    assert hasattr(datasets, str(error.value).rpartition(".")[2].removesuffix("()"))


def test_split_divides_text_and_rejects_empty_parts():
    assert corpora.split("abcdefghij", 0.7) == ("abcdefg", "hij")
    for text, share in (("abc", 1.0), ("abc", float("nan")), ("abc", 0.1)):
        with pytest.raises(ValueError, match=r"between 0 and 1|one part would be empty"):
            corpora.split(text, share)


def test_data_command_lists_and_fetches_files(publish, tmp_path):
    publish("multi30k", captions())
    run = partial(CliRunner().invoke, main)
    own, paths = (
        [str(tmp_path / folder / file.path) for file in corpora.CORPORA["multi30k"].files]
        for folder in ("data", "cache")
    )
    assert run(["data", "path", "multi30k"]).output.split() == own
    assert run(["data", "fetch", "multi30k"]).output.split() == paths
    assert run(["data", "verify", "multi30k"]).output.split() == ["multi30k", "ok"]
    assert [line.split()[:2] for line in run(["data", "list"]).output.splitlines()] == [
        [name, {"pydoc": "embedded", "multi30k": "ok"}.get(name, "absent")] for name in corpora.CORPORA
    ]


def test_every_corpus_file_has_path_url_and_hash():
    catalogue = [file for corpus in corpora.CORPORA.values() for file in corpus.files]
    assert len({file.path for file in catalogue}) == len({file.sha256 for file in catalogue}) == len(catalogue) == 13
    for file in catalogue:
        assert file.url.rpartition("/")[2] == Path(file.path).name
        assert len(bytes.fromhex(file.sha256)) == 32
