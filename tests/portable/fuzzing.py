"""Small exported programs, and random mutations of their specs."""

import copy

import torch
from torch import nn

from tfviz import models, portable
from tfviz.portable.language_model import export_language_model

OPS = sorted(portable.SUPPORTED_OPERATORS)
LARGE = (2**31 - 1, -(2**31) + 1, 2**31, 2**63, 10**400, 65_536, 10**6, 50_000)
ODD = (None, True, False, 0, 1, -1, 2, 3, 0.5, float("nan"), float("inf"), "", "words", "int64", "float32", "x" * 300)
ODD += ([], {})
ODD += ([0], [1, 2], {"value": 0}, {"value": -1}, {"value": 10**9})
ODD += ({"size": "positions"}, {"size": ["//", 1, 0]}, {"float": "nan"}, {"float": 3})
ODD += (*LARGE, [*LARGE[:2]], [50_000, 50_000], {"size": ["*", 2**30, 2**30, 2**30]}, ["max"], {"value": 0, "size": 1})


def programs():
    """(program, inputs) of several kinds, small."""
    torch.manual_seed(5)
    ids = torch.randint(1, 11, (2, 5))
    positions = {"ids": {1: "positions"}}
    small = {"layers": 1, "heads": 2, "dim": 4}
    gpt = models.GPT(11, context=7, **small)
    made = [(portable.export(gpt, ids, lengths=positions), [ids])]
    read, step = export_language_model(gpt, "float32").values()
    kept = [one for name, one in read(ids[:1]).items() if name != "logits"]
    made.append((step, [ids[:1, :1], *kept]))
    wide = models.Classifier(300, 3, context=7, **small)
    made.append((portable.export(wide, ids, lengths=positions, dtype="int8"), [ids]))
    both = models.Transformer(11, 13, context=7, **small)
    made.append((portable.export(both, ids, ids[:, :3]), [ids, ids[:, :3]]))
    x = torch.randn(2, 3, 8)
    made.append((portable.export(nn.LSTM(8, 4, batch_first=True), x), [x]))
    net = nn.Sequential(nn.Conv1d(3, 6, 3), nn.BatchNorm1d(6), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(18, 2))
    made.append((portable.export(net, x), [x]))
    y = torch.arange(6.0).reshape(2, 3)

    def shapes(x):
        grid = torch.meshgrid(torch.arange(3), torch.arange(2), indexing="ij")
        parts = torch.cat([x, torch.zeros(2, 3), torch.full((1, 3), 2.0)]).split(2)
        whole = torch.div(x.long(), 2, rounding_mode="trunc") + grid[0].T
        return {
            "a": torch.einsum("ij,kj->ik", parts[0], x),
            "b": nn.functional.pad(x, (1, 2)),
            "c": whole,
            "d": x.repeat(2, 2).topk(2)[1],
            "e": nn.functional.one_hot(whole.abs(), 9),
            "f": x.unfold(1, 2, 1),
        }

    made.append((portable.export(shapes, y, lengths={}), [y]))
    return made


def paths(value, way=()):
    """The ways to all parts of plain values."""
    yield way
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from paths(part, (*way, key))


def fuzzed(spec, draw):
    """A copy in which one to three parts are other ones."""
    found = copy.deepcopy(spec)
    for _ in range(draw.choice((1, 1, 2, 3))):
        *way, last = draw.choice([one for one in paths(found) if one])
        home = found
        for key in way:
            home = home[key]
        _change(home, last, found, draw)
        if not (isinstance(found, dict) and any(paths(found))):
            break
    return found


def _change(home, key, whole, draw):
    kind = draw.randrange(6)
    if kind == 0 and isinstance(home[key], int) and not isinstance(home[key], bool):
        home[key] += draw.choice((-1, 1, 2, 7, 10**5))
    elif kind == 1:
        home.pop(key)
    elif kind == 2 and isinstance(home, list):
        home.insert(key, copy.deepcopy(draw.choice(home)))
    elif kind == 3:
        way = draw.choice(list(paths(whole)))
        for step in way:
            whole = whole[step]
        home[key] = copy.deepcopy(whole)
    elif kind == 4 and key == "op":
        home[key] = draw.choice(OPS)
    else:
        home[key] = copy.deepcopy(draw.choice(ODD))


def outcome(spec, program, inputs):
    """What comes of a changed program: "refused", "stopped" while it runs, "computed", or another error."""
    try:
        made = portable.Program(spec, program.tensors)
    except ValueError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__} when made: {error}"
    try:
        made(*inputs)
        return "computed"
    except ValueError:
        return "stopped"
    except Exception as error:
        return f"{type(error).__name__} when run: {error}"
