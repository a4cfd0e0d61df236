"""What tfviz does with its dependencies alone: `python tests/without_extras.py`, in an empty folder.

Capture, views, studios, analyses, models and generation need no extra; training and the command say which they need.
"""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import torch

import tfviz
from tfviz import generate, learn, look, models, study, text, view
from tfviz.lessons import demo

INSTALLS_LESSONS = "pip install 'tfviz[lessons] @ git+https://github.com/tfviz/tfviz'"
README = Path(__file__).parents[1] / "README.md"


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "tfviz", *arguments], capture_output=True, encoding="utf-8")


def check_installation() -> None:
    clone = README.parent
    assert clone not in Path(tfviz.__file__).parents, f"this is the clone's tfviz: {tfviz.__file__}"
    assert importlib.metadata.version("tfviz") == tfviz.__version__
    assert {"torch", "matplotlib"} < sys.modules.keys()
    for name in ("jupyterlab", "transformers", "click", "anywidget"):
        assert not importlib.util.find_spec(name), f"{name} is here, so nothing is proved without it"
    assert INSTALLS_LESSONS in command("demo").stderr


def check_readme() -> None:
    script = re.search(r"<!-- paste -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert script
    exec(compile(script[1], "README.md", "exec"), {"__name__": "pasted"})
    assert "4 layers × 4 heads" in Path("heads.html").read_text(encoding="utf-8")


def check_views(model: torch.nn.Module, letters: text.CharacterTokenizer) -> None:
    ids = letters.encode("To be, or not to be")
    with torch.no_grad(), look.capture(model) as seen:
        model(ids[None])
    maps = look.AttentionMaps.from_capture(seen, query_tokens=letters.tokens(ids))
    maps.save("maps.safetensors")
    assert torch.equal(look.AttentionMaps.load("maps.safetensors").weights, maps.weights)
    for name in ("head.png", "head.svg", "head.html"):
        view.head(maps, 1, 1).save(name)
    view.write(model, letters, "ROMEO:").save("write.html")
    assert Path("write.html").stat().st_size > 2e6  # the model is in it
    for with_kernel in (lambda: view.live(maps), lambda: view.write(model, letters, "ROMEO:", kernel=True)):
        says = ""
        try:
            with_kernel()
        except ImportError as error:
            says = str(error)
        assert INSTALLS_LESSONS in says


def check_analyses(model: torch.nn.Module, letters: text.CharacterTokenizer) -> None:
    clean, corrupt = letters.encode("the king")[None], letters.encode("the duke")[None]
    metric = study.logit_difference(*letters.encode("s."))
    table = study.patch(model, clean, corrupt, metric=metric)
    view.table(table).save("patch.html")
    assert torch.isfinite(table.values).all()


def check_generation(model: torch.nn.Module, letters: text.CharacterTokenizer) -> None:
    written = generate.text(model, letters, "ROMEO:", 5, generate.GREEDY)
    assert len(written) == 11
    batches = text.Windows(letters.encode("the red house by the sea. " * 20), 16, 4)
    small = models.GPT(len(letters), layers=1, heads=2, dim=8, context=16)
    says = ""
    try:  # training needs accelerate
        next(learn.fit(small, batches, 1, progress=False))
    except ImportError as error:
        says = str(error)
    assert INSTALLS_LESSONS in says


if __name__ == "__main__":
    check_installation()
    check_readme()
    model, letters = demo.load()
    check_views(model, letters)
    check_analyses(model, letters)
    check_generation(model, letters)
    print(f"tfviz {tfviz.__version__} of {Path(tfviz.__file__).parent} works with its dependencies alone")
