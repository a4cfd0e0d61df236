"""The public API as a user's type-checked code calls it: `mypy --strict` and pyright accept every line, and it runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import torch
from torch import Tensor, nn

import tfviz
from tfviz import generate, layers, learn, look, models, portable, study, text, view

TEXT = "the red house by the sea. " * 20


def train() -> tuple[models.GPT, text.CharacterTokenizer]:
    letters = text.CharacterTokenizer.from_text(TEXT)
    model = models.GPT(len(letters), layers=2, heads=2, dim=8, context=16, positions=layers.positions.Rotary)
    batches = text.Windows(letters.encode(TEXT), 16, 4)
    for step in learn.fit(model, batches, steps=2, lr=3e-3, progress=False):
        assert_type(step, learn.Step)
        assert_type(step.loss, float)
    assert_type(learn.evaluate.loss(model, [batches[0]]), float)
    return model, letters


def watch(model: nn.Module, letters: text.CharacterTokenizer) -> look.AttentionMaps:
    ids = letters.encode("the red")
    with torch.no_grad(), look.capture(model, "*.pattern", dtype=torch.uint8) as seen:
        model(ids[None])
    assert_type(seen, look.Capture)
    assert_type(seen.summary, str)
    assert_type(list(seen), list[str])
    maps = look.AttentionMaps.from_capture(seen, query_tokens=letters.tokens(ids))
    assert_type(maps, look.AttentionMaps)
    maps.save(Path("maps.safetensors"))
    return tfviz.look.AttentionMaps.load("maps.safetensors")


def draw(maps: look.AttentionMaps, model: models.GPT, letters: text.CharacterTokenizer) -> None:
    for shown in (view.heads(maps), view.head(maps, 0, 1), view.compare(maps, maps), view.tokens(["a"], [0.1])):
        assert_type(shown, view.View)
        shown.save("shown.html")
    view.write(model, letters, "the").save("write.html")
    assert_type(view.mask(layers.masks.causal.dense(4, 4)), view.View)


def analyse(model: models.GPT, letters: text.CharacterTokenizer) -> Mapping[str, float]:
    clean, corrupt = letters.encode("the red")[None], letters.encode("the sea")[None]
    metric = study.logit_difference(1, 2)

    def strongest(seen: look.Capture, inputs: object) -> Tensor:
        return seen["blocks.0.attention.pattern"].amax((2, 3))

    def sites(seen: look.Capture, inputs: object) -> dict[str, Tensor]:
        return {site: seen[site].amax((2, 3)) for site in seen}

    table = study.patch(model, clean, corrupt, metric=metric, progress=False)
    assert_type(table, study.Table)
    assert_type(table.values, Tensor)
    assert_type(view.table(table), view.View)
    assert_type(study.aggregate(model, [clean], strongest, progress=False), study.Statistics)
    assert_type(study.aggregate(model, [clean], sites, progress=False), dict[str, study.Statistics])
    assert_type(study.logit_attribution(model, clean, target=metric), study.Table)
    return {" ".join(labels): number for labels, number in table.top(3)}


def write(model: models.GPT, letters: text.CharacterTokenizer) -> str:
    sampler = generate.Sampler(temperature=0.8, top_k=5)
    assert_type(list(generate.stream(model, letters, "the", 3, sampler)), list[str])
    program = portable.export(model, letters.encode("the")[None])
    assert_type(program, portable.Program)
    return generate.text(model, letters, "the ", 5, generate.GREEDY)


def main() -> None:
    gpt, letters = train()
    maps = watch(gpt, letters)
    draw(maps, gpt, letters)
    print(analyse(gpt, letters), write(gpt, letters), tfviz.__version__)


if __name__ == "__main__":
    main()
