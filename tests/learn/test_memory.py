"""The memory meter, compared with tensor sizes computed by hand."""

import pytest
import torch

from tfviz.learn.memory import Meter


def test_meter_counts_tensors_until_freed():
    with Meter() as meter:
        meter.label = "first"
        a = torch.zeros(30, 10)  # 1,200 bytes
        meter.label = "second"
        b = a.double()  # 2,400
        del a
        c = b.sum(0)  # 80
    assert meter.held == {"first": 0, "second": 2480}
    assert meter.total == 2480
    assert meter.peak == 3600
    del b, c
    assert meter.total == 0


def test_meter_ignores_views_and_in_place_changes():
    outside = torch.zeros(7, 3)
    with Meter() as meter:
        outside.add_(1)
        outside.view(21).mul_(2)
        kept = [outside.T, outside[2:], outside.detach()]
    assert (meter.total, meter.peak, len(kept)) == (0, 0, 3)


def test_meter_counts_tensors_saved_for_backward():
    x = torch.randn(5, 7, requires_grad=True)
    with Meter() as meter:
        y = x.exp().exp()  # each result is kept for its own gradient
        before = meter.total
        y.sum().backward()
    assert before == 2 * 5 * 7 * 4
    assert meter.peak > before
    assert meter.total == y.nbytes + x.grad.nbytes  # the result between them went with the graph


def test_fullest_returns_the_peak_of_each_label():
    with Meter() as meter:
        meter.label = 0
        a = torch.zeros(4)
        meter.label = 1
        b = torch.zeros(8)
        turn = len(meter.log)
        del b
        meter.label = 0
        c = torch.zeros(2)
    assert meter.snapshot_at_peak(0) == {0: 24, 1: 0}
    assert meter.snapshot_at_peak(0, stop=turn) == {0: 16}
    assert meter.snapshot_at_peak(0, turn) == {0: 24, 1: 0}
    assert (a.sum(), c.sum()) == (0, 0)
    with pytest.raises(LookupError, match="labelled 1 between entries 2 and the end"):
        meter.snapshot_at_peak(1, turn)


def test_unused_meter_has_zero_peak():
    assert Meter().peak == 0
