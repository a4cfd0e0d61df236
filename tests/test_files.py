"""Writing that never leaves half a file."""

import os
import subprocess
import sys
import textwrap

import pytest

from tfviz import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def folder_of(path, text):
    path.mkdir()
    (path / "inner.txt").write_text(text)


SCRIPT = """
    import os, shutil, sys, tempfile
    from pathlib import Path
    import filelock
    from tfviz import files

    def dying(call, place, calls=[]):
        def called(*given, **more):
            calls.append(call)
            if len(calls) == place:
                os._exit(7)
            return call(*given, **more)
        return called

    for place in range(1, 100):
        child = os.fork()
        if not child:
            calls = [(os, "replace"), (shutil, "rmtree"), (tempfile, "mkdtemp"), (os, "unlink"), (os, "rmdir")]
            for holder, name in calls:
                setattr(holder, name, dying(getattr(holder, name), place))
            with files.atomic(sys.argv[1]) as draft:
                draft.mkdir()
                (draft / "inner.txt").write_text(str(place))
            os._exit(0)
        if not os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            break
        files.tidy(Path(sys.argv[1]).parent)
        (it,) = Path(sys.argv[1]).parent.iterdir()
        print(it.name, (it / "inner.txt").read_text())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_kill_between_any_two_calls_loses_nothing(tmp_path):
    """A folder is replaced again and again by processes that die, each a call to the system later than the last."""
    with files.atomic(tmp_path / "it") as draft:
        folder_of(draft, "0")
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path / "it")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = [line.split() for line in done.stdout.splitlines()]
    assert {name for name, _ in found} == {"it"}, done.stderr
    numbers = [int(number) for _, number in found]
    assert numbers == sorted(numbers)  # each is its own, or the one before
    assert 0 in numbers
    assert len(set(numbers)) > 2


def test_an_error_between_leaves_what_stood(tmp_path, monkeypatch):
    with files.atomic(tmp_path / "it") as draft:
        folder_of(draft, "old")
    replace, calls = os.replace, []

    def interrupted(*given):
        calls.append(given)
        replace(*given)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), files.atomic(tmp_path / "it") as draft:
        folder_of(draft, "new")
    assert names(tmp_path) == ["it"]
    assert (tmp_path / "it/inner.txt").read_text() == "new"


def test_drafts_of_the_living_are_left_alone(tmp_path):
    with files.atomic(tmp_path / "one") as draft:
        draft.write_text("1")
        files.tidy(tmp_path)
        with files.atomic(tmp_path / "other") as second:
            second.write_text("2")
        assert draft.exists()
    (tmp_path / ".mine.tfviz-draft").mkdir()
    (tmp_path / ".mine.12345678.draft").mkdir()
    files.tidy(tmp_path)
    assert names(tmp_path) == [".mine.12345678.draft", ".mine.tfviz-draft", "one", "other"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "it")
    with files.atomic(tmp_path / "link") as draft:
        draft.write_text("1")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "there") == ["it"]


def test_a_folder_is_one_users_at_a_time(tmp_path):
    with files.alone(tmp_path / "it"):
        with pytest.raises(BlockingIOError, match="in use by another"), files.alone(tmp_path / "it"):
            pass
        with files.alone(tmp_path / "other"):
            pass
    with files.alone(tmp_path / "it"):
        pass
