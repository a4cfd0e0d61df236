"""Studios in JupyterLab, after papermill, in lesson pages and in nbconvert's HTML, with and without a kernel."""

import nbformat
import pytest
import torch
from jupyterlab_server import nbconverted, run_all, run_by_papermill, write
from writing_studios import format_percent, spoken

from tfviz.lessons import lesson_page

pytest_plugins = ["browser", "jupyterlab_server"]
MODELS = """import torch
from tfviz import models, text, view

def wide(model):
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()

torch.manual_seed(1)
tokenizer = text.train_whole_words(["the plot was not very good but the music was never dull"])
sizes = {"context": 24, "layers": 2, "heads": 3, "dim": 24}
gpt = wide(models.GPT(len(tokenizer), **sizes))
translator = wide(models.Transformer(len(tokenizer), len(tokenizer), **sizes))
classifier = wide(models.Classifier(len(tokenizer), 2, **sizes))
bert = wide(models.BERT(len(tokenizer), **sizes))
exact = {"dtype": "float32"}

def twice(x):
    return {"twice": 2 * x}"""
STUDIOS = [
    'view.write(gpt, tokenizer, "the plot", **exact)',
    "view.translate(translator, (tokenizer, tokenizer), 'the plot', num_beams=1, max_new_tokens=5, **exact)",
    'view.classify(classifier, tokenizer, ["bad", "good"], "the plot was good", **exact)',
    'view.fill(bert, tokenizer, "the plot was good", masked=[1], **exact)',
    "view.interact(twice, x=(0.0, 4.0))",
]
ANSWERED = [
    'writing = view.write(gpt, tokenizer, "the plot", kernel=True)\nwriting',
    "asking = view.interact(twice, x=(0.0, 4.0), kernel=True)\nasking",
    'view.classify(classifier, tokenizer, ["bad", "good"], "the plot was good", kernel=True)',
    'view.fill(bert, tokenizer, "the plot was good", masked=[1], kernel=True)',
    "view.translate(translator, tokenizer, 'the plot', num_beams=1, max_new_tokens=5, kernel=True)",
    'writing.state = {**writing.state, "prompt": "the music"}\nasking.values = {"x": 3.0}',
]


@pytest.fixture(scope="module")
def models_scope():
    """What `MODELS` makes: the same here as in a notebook."""
    scope = {}
    exec(MODELS, scope)
    return scope


@pytest.fixture(scope="module")
def notebook_folder(folder):
    run_by_papermill(write(folder, "studios", [MODELS, *STUDIOS, *ANSWERED]))
    return folder


@pytest.fixture(scope="module")
def expect():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sync_api.expect.set_options(timeout=30_000)
    return sync_api.expect


def run_on_text(model, tokenizer, words):
    with torch.no_grad():
        return model(tokenizer.encode(words)[None])


def check_top_share(expect, view, shares, words):
    """The likeliest comes first, with its share."""
    share, best = shares.max(-1)
    expect(view.locator(".bar-list .bar-row .number").first).to_have_text(format_percent(share.item()))
    expect(view.locator(".bar-list .bar-row .name").first).to_contain_text(spoken(words[best]))


def use_write(expect, view, models_scope):
    tokenizer, words = (
        models_scope["tokenizer"],
        models_scope["tokenizer"].tokens(range(len(models_scope["tokenizer"]))),
    )
    for prompt in ("the music", "the music was"):
        view.locator(".editor").fill(prompt)
        check_top_share(expect, view, run_on_text(models_scope["gpt"], tokenizer, prompt)[0, -1].softmax(-1), words)
    expect(view.locator(".before")).to_have_count(0)
    view.get_by_role("button", name="head 0 of layer 0, on").press("x")
    expect(view.locator(".metric").first).to_contain_text("without 1 head")
    expect(view.locator(".before").first).to_be_attached()


def use_translate(expect, view, models_scope):
    tokenizer, model = models_scope["tokenizer"], models_scope["translator"]
    view.locator(".editor").fill("the music was dull")
    source = torch.tensor([[*tokenizer.encode("the music was dull").tolist(), tokenizer["[EOS]"]]])
    with torch.no_grad():
        shares = model(source, torch.tensor([[tokenizer["[BOS]"]]]))[0, 0].softmax(-1)
    shares[[0, tokenizer["[BOS]"]]] = 0
    first = view.locator(".written .word").first
    expect(first).to_have_text(spoken(tokenizer.tokens([int(shares.argmax())])[0]))
    first.click()
    check_top_share(expect, view, shares, tokenizer.tokens(range(len(tokenizer))))


def type_text(view, text):
    view.get_by_role("button", name="Edit the text").click()
    view.locator("textarea").fill(text)
    view.get_by_role("button", name="Done").click()


def use_classify(expect, view, models_scope):
    type_text(view, "the music was dull")
    shares = (
        run_on_text(models_scope["classifier"], models_scope["tokenizer"], "the music was dull")[0].softmax(-1).tolist()
    )
    expect(view.locator(".bar-list:not(.ranking) .bar-row .number")).to_have_text(
        [format_percent(share) for share in shares]
    )
    view.locator(".word-list .word").last.click()
    shares = run_on_text(models_scope["classifier"], models_scope["tokenizer"], "the music was")[0].softmax(-1).tolist()
    expect(view.locator(".bar-list:not(.ranking) .bar-row .number")).to_have_text(
        [format_percent(share) for share in shares]
    )


def use_fill(expect, view, models_scope):
    tokenizer = models_scope["tokenizer"]
    type_text(view, "the music was dull")
    view.locator(".word-list .word").nth(3).click()
    ids = [tokenizer["[CLS]"], *tokenizer.encode("the music was").tolist(), tokenizer["[MASK]"], tokenizer["[SEP]"]]
    with torch.no_grad():
        tokens = models_scope["bert"](torch.tensor([ids])).logits[0, 4]
    check_top_share(expect, view, tokens.softmax(-1), tokenizer.tokens(range(len(tokenizer))))


def use_interact(expect, view, models_scope):
    view.locator("details", has_text="Table").locator("summary").click()
    slider = view.locator("input[type=range]")
    slider.focus()
    for _ in range(2):
        before = float(slider.input_value())
        slider.press("ArrowRight")
        assert float(slider.input_value()) > before
        told = view.locator(".tables td").first
        expect(told).to_have_text(f"{models_scope['twice'](float(slider.input_value()))['twice']:.2g}")


USES = [use_write, use_translate, use_classify, use_fill, use_interact]
KERNEL_USES = [use_write, use_interact, use_classify, use_fill, use_translate]


def use_all_studios(expect, views, models_scope):
    """Each studio that computes in the page answers as Python does."""
    for number, use in enumerate(USES):
        views.nth(number).scroll_into_view_if_needed()
        use(expect, views.nth(number), models_scope)


def test_studios_match_torch_in_jupyterlab_and_kernel_follows_python_state(
    notebook, notebook_folder, models_scope, expect
):
    page = notebook("studios")
    run_all(page)
    views, answered = page.locator(".tfviz[data-alive]"), page.locator(".tfviz:not([data-alive])")
    expect(views).to_have_count(len(USES))
    use_all_studios(expect, views, models_scope)
    expect(answered).to_have_count(len(KERNEL_USES))
    expect(answered.first.locator(".editor")).to_have_text("the music")  # the last cell said so
    expect(answered.nth(1).locator("input[type=range]")).to_have_value("3")
    for number, use in enumerate(KERNEL_USES):
        answered.nth(number).scroll_into_view_if_needed()
        use(expect, answered.nth(number), models_scope)


def test_studios_match_torch_after_papermill(notebook, notebook_folder, models_scope, expect):
    views = notebook("signed").locator(".tfviz[data-alive]")
    expect(views).to_have_count(len(USES))
    use_all_studios(expect, views, models_scope)


def test_studios_match_torch_in_lesson_page_and_those_of_a_kernel_are_static(
    notebook_folder, new_page, models_scope, expect
):
    lesson_page.write(nbformat.read(notebook_folder / "unsigned.ipynb", as_version=4), notebook_folder / "page.html")
    page = new_page(width=1300)
    page.goto((notebook_folder / "page.html").as_uri())
    views = page.locator(".tfviz[data-alive]")
    expect(views).to_have_count(len(USES) + len(KERNEL_USES))
    use_all_studios(expect, views, models_scope)
    writing, asking, *others = [views.nth(len(USES) + number) for number in range(len(KERNEL_USES))]
    for studio in (writing, *others):
        expect(studio).to_contain_text("a model in Python computed this, and its kernel has ended")
    expect(writing.locator("h1, h3")).to_contain_text("the plot")
    expect(asking).to_contain_text("Python computed this, and its kernel has ended")
    asking.locator("details", has_text="Table").locator("summary").click()
    expect(asking.locator(".tables td").first).to_have_text("4")


def test_studios_match_torch_in_plain_nbconvert_html(notebook_folder, chromium, models_scope, expect):
    with nbconverted(notebook_folder, chromium) as page:
        views = page.locator(".tfviz[data-alive]")
        expect(views).to_have_count(len(USES))  # nbconvert leaves out those of a kernel
        use_all_studios(expect, views, models_scope)
