"""Measurements that are written one by one: a run that was stopped goes on."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from resumed import Measurements


def test_what_was_measured_is_not_measured_again(tmp_path, capsys):
    path, calls = tmp_path / "new" / "found.json", []

    def rows():
        calls.append(1)
        yield ["a", "1"]
        yield ["b", "2"]

    first = Measurements(path, ["cpu", 3], minutes=1)
    first.measure("one", rows)
    assert json.loads(path.read_text(encoding="utf-8"))["measurements"]["one"]["rows"] == [["a", "1"], ["b", "2"]]
    again = Measurements(path, ["cpu", 3], minutes=1)
    again.measure("one", rows)
    assert len(calls) == 1
    assert again.all_rows() == again.rows("one") == [["a", "1"], ["b", "2"]]
    other = Measurements(path, ["cpu", 4], minutes=1)
    assert other.all_rows() == []


def test_what_failed_or_had_no_time_is_named_and_tried_again(tmp_path, capsys):
    def broken():
        yield ["a", "1"]
        raise MemoryError("too\nlarge")

    first = Measurements(tmp_path / "found.json", [], minutes=1)
    first.measure("broken", broken)
    first.until = 0
    first.measure("late", broken)
    assert first.all_rows() == []
    assert first.notes() == [
        "Skipped: broken (MemoryError: too).",
        "Skipped: late (no time was left: the same command goes on here).",
    ]
    again = Measurements(tmp_path / "found.json", [], minutes=1)
    again.measure("broken", lambda: [["a", "1"]])
    assert again.all_rows() == [["a", "1"]]
