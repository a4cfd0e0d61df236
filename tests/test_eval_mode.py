"""Functions that switch a model to eval mode restore the training flag of every submodule, even on failure."""

import pytest
import torch
from torch import nn

from tfviz import generate, models, portable, study, text
from tfviz.eval_mode import eval_mode_with_grad, model_device
from tfviz.learn import evaluate

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])
TOKENIZER = text.CharacterTokenizer("abcdefghijk")


def partly_frozen():
    torch.manual_seed(0)
    model = models.GPT(11, context=8, layers=2, heads=3, dim=6, dropout=0.3)
    model.train()
    model.blocks[0].eval()
    return model


USES = {
    "loss": lambda model: evaluate.loss(model, [(IDS, IDS)]),
    "sampling": lambda model: list(generate.ids(model, IDS[0], 2)),
    "export": lambda model: portable.export(model, IDS),
    "patch": lambda model: study.patch(model, IDS[:1], IDS[1:], metric=study.logit(3), progress=False),
    "lens": lambda model: study.logit_lens(model, IDS[:1]),
    "attribute": lambda model: study.logit_attribution(model, IDS, target=study.logit(3)),
    "aggregate": lambda model: study.aggregate(model, [IDS], study.HeadScores(), progress=False),
    "maps_during_training": lambda model: study.maps_during_training(range(3), model, IDS[:1], every=2),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("fails", [False, True])
def test_eval_mode_restores_every_training_flag(name, fails):
    model = partly_frozen()
    before = {path: part.training for path, part in model.named_modules()}
    assert len(set(before.values())) == 2
    if fails:
        handle = model.register_forward_hook(interrupt)
        with pytest.raises(Exception, match="interrupted"):
            USES[name](model)
        handle.remove()
    else:
        USES[name](model)
    assert {path: part.training for path, part in model.named_modules()} == before


def interrupt(model, args, output):
    assert not any(part.training for part in model.modules() if not isinstance(part, nn.ModuleList))
    raise InterruptedError("interrupted")


def test_gradients_are_off_inside_and_as_before_after():
    for before in (True, False):
        with torch.set_grad_enabled(before):
            with evaluate.eval_mode(model := partly_frozen()) as device:
                assert not torch.is_grad_enabled()
            assert torch.is_grad_enabled() == before
        assert device == torch.device("cpu") == model_device(nn.Dropout())
    with eval_mode_with_grad(model):
        assert torch.is_grad_enabled()
