"""Atomic writes, tensor and JSON files, rejection of damaged files, and JSON schemas."""

import json
import os
import random
import subprocess
import sys
import textwrap

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operating_systems import links, make_pipe

from tfviz import files, schema

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(3, dtype=torch.int8), "none": torch.empty(0, 4)}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, text, into_folder):
    with files.atomic(path) as draft:
        if into_folder:
            draft.mkdir()
            draft = draft / "inner.txt"
        draft.write_text(text, encoding="utf-8")


def read(path):
    return (path / "inner.txt" if path.is_dir() else path).read_text(encoding="utf-8")


SCRIPT = """
    import os, shutil, sys, tempfile
    from tfviz import files

    def dying(call, place, calls=[]):
        def called(*args, **options):
            calls.append(call)
            if len(calls) == place:
                os._exit(7)
            return call(*args, **options)
        return called

    for place in range(1, 100):
        child = os.fork()
        if not child:
            for module, name in [(os, "replace"), (shutil, "rmtree"), (tempfile, "mkdtemp"), (os, "unlink")]:
                setattr(module, name, dying(getattr(module, name), place))
            with files.atomic(sys.argv[1]) as draft:
                draft.write_text(str(place))
            os._exit(0)
        print(open(sys.argv[1]).read())
        if not os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_atomic_write_survives_kill_at_any_point(tmp_path):
    """A file is replaced again and again by processes that die, each a call to the system later than the last."""
    write(tmp_path / "it", "0", into_folder=False)
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path / "it")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    found = [int(line) for line in done.stdout.split()]
    assert found == sorted(found), done.stderr  # each is its own, or the one before
    assert found[0] == 0
    assert done.returncode == 0


@pytest.mark.parametrize("into_folder", [False, True])
def test_atomic_write_keeps_old_content_on_error(tmp_path, into_folder):
    write(tmp_path / "it", "old", into_folder)
    with pytest.raises(KeyboardInterrupt), files.atomic(tmp_path / "it") as draft:  # noqa: PT012
        draft.mkdir() if into_folder else draft.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["it"]
    assert read(tmp_path / "it") == "old"
    write(tmp_path / "it", "new", into_folder)
    assert names(tmp_path) == ["it"]
    assert read(tmp_path / "it") == "new"


def test_atomic_write_keeps_folder_if_replace_fails(tmp_path, monkeypatch):
    write(tmp_path / "it", "old", into_folder=True)
    replace = os.replace

    def fail_once(*args):
        monkeypatch.setattr(os, "replace", replace)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises(OSError, match=r"it cannot be written: No space"):
        write(tmp_path / "it", "new", into_folder=True)
    assert names(tmp_path) == ["it"]
    assert read(tmp_path / "it") == "old"


def test_atomic_write_allows_concurrent_writers(tmp_path):
    with files.atomic(tmp_path / "it") as one, files.atomic(tmp_path / "it") as other:
        one.write_text("1", encoding="utf-8")
        other.write_text("2", encoding="utf-8")
    assert names(tmp_path) == ["it"]
    assert read(tmp_path / "it") == "1"


@links
def test_atomic_write_follows_symlinks(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "it")
    write(tmp_path / "link", "1", into_folder=False)
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "there") == ["it"]


def equal(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(one[n], other[n]) and one[n].dtype == other[n].dtype for n in one
    )


def test_save_tensors_round_trips(tmp_path):
    tensors = {**TENSORS, "half": torch.ones(5, dtype=torch.bfloat16)}
    files.save_tensors(tmp_path / "x", tensors, {"words": "漢 </script>"})
    found, metadata = files.load_tensors(tmp_path / "x")
    assert equal(found, tensors)
    assert metadata == {"words": "漢 </script>"}
    files.save_tensors(tmp_path / "empty", {})
    assert files.load_tensors(tmp_path / "empty") == ({}, {})


def test_save_tensors_copies_shared_memory(tmp_path):
    one = torch.arange(6.0)
    files.save_tensors(tmp_path / "x", {"a": one, "b": one, "c": one[2:5], "d": one.view(2, 3).mT})
    tensors, _ = files.load_tensors(tmp_path / "x")
    assert tensors["a"].tolist() == tensors["b"].tolist() == [0, 1, 2, 3, 4, 5]
    assert (tensors["c"].tolist(), tensors["d"].tolist()) == ([2, 3, 4], [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize("length", range(8))
def test_save_tensors_is_deterministic(tmp_path, length):
    """Whatever the order in which a hash table goes through it, and however far its header is padded."""
    tensors = {f"tensor {i}": torch.full((i, 2), float(i)) for i in range(1, 9)}
    metadata = {f"key {i}": 'ä\n\x01"' * i for i in range(9)} | {"length": "x" * length}
    paths = [tmp_path / f"{i}.safetensors" for i in range(6)]
    for path in paths:
        files.save_tensors(path, tensors, metadata)
    assert len({path.read_bytes() for path in paths}) == 1
    found, found_metadata = files.load_tensors(paths[0])
    assert found_metadata == metadata
    assert equal(found, tensors)


def test_load_rejects_damaged_files(tmp_path):
    path = tmp_path / "x"
    files.save_tensors(path, TENSORS, {"format": "mine"})
    content = path.read_bytes()
    for length in random.Random(1).sample(range(len(content)), 40):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"x is damaged, or not a safetensors file"):
            files.load_tensors(path)
    for content in (b"", b"{", b"\xff\xfe{\x00", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x is .*damaged, or not JSON"):
            files.read_json(path)


@pytest.mark.parametrize("open_file", [files.load_tensors, files.read_json])
def test_load_raises_for_folders_pipes_and_missing_files(tmp_path, open_file):
    make_pipe(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            open_file(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
POINT = schema.object_of(
    {"x": schema.integer(0, 9), "kind": schema.enum("a", "b")}, {"names": schema.list_of(schema.string(3), 1, 2)}
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(VALUES)
def test_json_value_round_trips(tmp_path, value):
    schema.json_value(value, "value")
    (tmp_path / "x").write_text(json.dumps(value), encoding="utf-8")
    assert files.read_json(tmp_path / "x") == value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"x": 9, "kind": "a", "names": ["abc"]}, ""),
        ({"x": 0, "kind": "b"}, ""),
        ([], "p is a list"),
        ({"x": 3}, "p has no 'kind'"),
        ({"x": 3, "kind": "a", "y": 1}, "'y', which is not known"),
        ({"x": 10, "kind": "a"}, "p.x is 10"),
        ({"x": -1, "kind": "a"}, "p.x is -1"),
        ({"x": True, "kind": "a"}, "p.x is True"),
        ({"x": 1.0, "kind": "a"}, "p.x is 1.0"),
        ({"x": 3, "kind": "c"}, "p.kind is 'c'"),
        ({"x": 3, "kind": "a", "names": []}, "p.names has 0"),
        ({"x": 3, "kind": "a", "names": ["a", "b", "c"]}, "p.names has 3"),
        ({"x": 3, "kind": "a", "names": ["a", "abcd"]}, r"p.names\[1\] has 4"),
        ({"x": 3, "kind": "a", "names": [5]}, r"p.names\[0\] is 5"),
    ],
)
def test_schema_object_validates_each_key(value, says):
    if not says:
        POINT(value, "p")
        return
    with pytest.raises(ValueError, match=says):
        POINT(value, "p")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, "3", None])
def test_schema_number_requires_a_finite_number(number):
    with pytest.raises(ValueError, match="finite number"):
        schema.number(number, "x")


def test_json_value_rejects_deep_nesting_and_non_string_keys():
    nested = []
    for _ in range(200):
        nested = [nested]
    for value, says in ((nested, "nested deeper"), ({1: 2}, "the key 1"), ({"a": {(): 0}}, "x.a has"), (object(), "x")):
        with pytest.raises(ValueError, match=says):
            schema.json_value(value, "x")
