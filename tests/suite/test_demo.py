"""The page of `tfviz demo`."""

import pytest
import torch
from click.testing import CliRunner

from tfviz import models, text
from tfviz.suite import demo
from tfviz.suite.cli import main


def test_the_page_holds_the_model_and_opens_only_if_asked(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(demo.webbrowser, "open", lambda *given: opened.extend(given) or True)
    out = tmp_path / "a page.html"
    told = CliRunner().invoke(main, ["demo", "--out", str(out), "--no-browser"])
    assert told.exit_code == 0
    assert str(out) in told.output
    assert not opened
    assert max(out.stat().st_size, demo.KEPT.stat().st_size) < 4_000_000
    assert CliRunner().invoke(main, ["demo", "--out", str(out)]).exit_code == 0
    assert opened == [out.resolve().as_uri()]


def test_it_says_so_where_there_is_no_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(demo.webbrowser, "open", lambda *_: False)
    told = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "x.html")])
    assert told.exit_code == 0
    assert "open the file" in told.output


def test_it_knows_its_text():
    model, letters = demo.load()
    ids = letters.encode("KING RICHARD III:\nNow is the winter of our discontent\n")
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(ids[None, :-1])[0], ids[1:])
    assert loss < 2.2  # by chance ln 65 = 4.2


def test_what_is_kept_is_what_was_given_in_half_precision(tmp_path):
    letters = text.Characters("abc\n")
    torch.manual_seed(0)
    model = models.GPT(4, **demo.SHAPE)
    demo.keep(model, letters, tmp_path / "m.safetensors")
    again, same = demo.load(tmp_path / "m.safetensors")
    assert same.characters == "abc\n"
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor.half().float()), name


def test_a_damaged_model_is_told(tmp_path):
    broken = tmp_path / "m.safetensors"
    broken.write_bytes(demo.KEPT.read_bytes()[:-7])
    with pytest.raises(ValueError, match="damaged"):
        demo.load(broken)
