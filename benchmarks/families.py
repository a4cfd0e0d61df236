"""Whether captured maps are those of the model, over models that nobody here wrote: every type of transformers.

Each type of the installed transformers is built small (`small.py`), with random weights and two texts of seven tokens,
one padded on the left (or pictures, or sounds). The reference is what the eager model itself returns as attentions;
where it returns none, what its attention modules or `eager_attention_forward` hand on as weights. Columns: one pass
under eager, sdpa and flex, equal within 1e-4 on rows that are no padding; then, for those that write, six greedy steps
with a dynamic cache, a static one, and a sliding window of five, whose joined maps are compared with one eager pass
over what was written. Every type that is not equal in every way stands in the table with its reason.

Rows are kept in `runs/families.jsonl` as they come, so that a run can be stopped and goes on; `--again` also
tries those that were not equal. Outside of transformers: `families_outside.py`.

    python benchmarks/families.py [--quick] [--again] [--only TYPE ...]
"""

import inspect
import json
import math
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import small
import torch
import transformers
from common import parser, report
from small import IDS, OPEN, Recipe
from torch import Tensor, nn

from tfviz.look import AttentionMaps, Capture, capture

STORE = Path(__file__).parent / "runs" / "families.jsonl"
PATIENCE = 40  # seconds for one type
SEARCH = 6  # seconds after which no other way to make it small is tried
WRITTEN = 6
WAYS = ("eager", "sdpa", "flex_attention")
CACHES = ("dynamic", "static", "sliding")
COLUMNS = ("eager", "sdpa", "flex", "dynamic cache", "static cache", "sliding window")
HEADER = ["type", "maps", *COLUMNS]
NONE = "–"
WHY = {  # what is known of those that are not equal
    "cpmant": "the model cuts its prompt's tokens off the maps it returns; the rest is equal",
    "t5gemma2": "it returns its one map over both texts as two",
    "diffllama": "fused, its weights meet two halves of the values: two invocations a step, which are not joined",
    "hrm_text": "its layers run several times a step, which are not joined",
}
OWN = "its own output is another than the eager model's"


def attentions(output: Any) -> Iterator[Tensor]:
    """All maps that a model returned, also those of its parts."""
    for name, value in output.items() if hasattr(output, "items") else ():
        if name.endswith("attentions"):
            yield from _maps(value)
        elif hasattr(value, "items"):
            yield from attentions(value)


def _maps(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor) and value.dim() > 3:
        yield value
    elif isinstance(value, Tensor) and value.dim() == 3 and torch.allclose(value.sum(-1), torch.ones(()), atol=1e-3):
        yield value[:, None]  # others are states
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _maps(one)


@contextmanager
def handed_on(model: nn.Module, kept: list[Tensor]) -> Iterator[None]:
    """Weights that attention modules return beside their output: tensors of four axes whose rows add up to 1."""

    def after(module: nn.Module, _: Any, output: Any) -> None:
        for one in output[1:] if isinstance(output, tuple) else ():
            if not (isinstance(one, Tensor) and one.dim() == 4 and one.is_floating_point() and one.numel()):
                continue
            if torch.allclose(one.sum(-1), torch.ones(()), atol=1e-3) and not any(one is other for other in kept):
                kept.append(one)

    handles = [part.register_forward_hook(after) for part in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def computed(kept: list[Tensor]) -> Iterator[None]:
    """Weights that `eager_attention_forward` returns, in whatever module of transformers it stands."""
    named = [module for name, module in list(sys.modules.items()) if name.startswith("transformers.models.")]
    swapped = [
        (module, module.eager_attention_forward) for module in named if "eager_attention_forward" in vars(module)
    ]

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            output = original(*args, **kwargs)
            kept.extend(_maps(output[1]))
            return output

        return call

    for module, original in swapped:
        module.eager_attention_forward = watched(original)
    try:
        yield
    finally:
        for module, original in swapped:
            module.eager_attention_forward = original


def reference(model: nn.Module, given: dict[str, Any]) -> tuple[Any, list[Tensor]]:
    """The output of an eager model, and its maps."""
    output = run(model, given, attentions=True)
    found = list(attentions(output))
    if not found:
        with handed_on(model, found):
            run(model, given)
    if not found:
        with computed(found):
            run(model, given)
    return output, of_words(model, [one.detach() for one in found])


def run(model: nn.Module, given: dict[str, Any], attentions: bool = False) -> Any:
    torch.manual_seed(0)
    if attentions:
        try:
            return model(**given, output_attentions=True)
        except TypeError as error:
            if "output_attentions" not in str(error):
                raise
    return model(**given)


def fitting(kind: str) -> tuple[Recipe, list[Tensor]] | str:
    """The first way in which a type can be built and run that has maps; else one that has none; else why not."""
    errors: Counter[str] = Counter()
    bare: Recipe | None = None
    until = time.monotonic() + SEARCH
    for sizing in small.SIZINGS:
        for layers in (2, 4, 8):
            if time.monotonic() > until:
                break
            for of in small.classes(kind)[:2]:
                found = _fits(Recipe(kind, sizing, layers, of), errors)
                if isinstance(found, tuple) and found[1]:
                    return found
                bare = bare or (found[0] if found else None)
            if bare or not _of_layers(errors):
                break
        if bare:
            return bare, []
    return next(iter(errors)) if errors else "it has no class of its own"


def _of_layers(errors: Counter[str]) -> bool:
    """Whether more layers may help: of a model with several kinds there may be too few to have each."""
    return any("get_seq_length" in one or "layer" in one for one in errors)


def _fits(recipe: Recipe, errors: Counter[str]) -> tuple[Recipe, list[Tensor]] | None:
    found = None
    try:
        model = small.build(recipe, "eager")
    except TimeoutError:
        raise
    except Exception as error:
        errors[said(error)] += 1
        return None
    for number, given in enumerate(small.inputs(model)):
        if number >= 24:
            break
        recipe = Recipe(recipe.kind, recipe.sizing, recipe.layers, recipe.of, number)
        try:
            _, maps = reference(model, given)
        except TimeoutError:
            raise
        except Exception as error:
            errors[said(error)] += 1
            continue
        found = found or (recipe, maps)
        if maps:
            return recipe, maps
        if number >= 8:
            break
    return found


def given_to(model: nn.Module, recipe: Recipe) -> dict[str, Any]:
    return next(given for number, given in enumerate(small.inputs(model)) if number == recipe.given)


def compared(found: Sequence[Tensor], expected: Sequence[Tensor], padded: int = 3) -> str:
    """Whether each expected map is among those found, each once: "equal", or what is not."""
    left = list(found)
    for number, wanted in enumerate(expected):
        ways = [wanted] if wanted.dim() == 4 else [wanted.flatten(0, -4), wanted.transpose(1, 2).flatten(0, -4)]
        ways += [way.softmax(-1) for way in ways if way.numel() and way.amin() < 0]  # a model may return its scores
        fits = next((i for i, one in enumerate(left) if any(close(one, way, padded) for way in ways)), None)
        if fits is None:
            shapes = Counter("x".join(map(str, one.shape)) for one in found)
            return f"map {number} of {'x'.join(map(str, wanted.shape))} is not among {dict(shapes)}"
        left.pop(fits)
    return "equal"


def close(one: Tensor, other: Tensor, padded: int) -> bool:
    """Of the second text only the rows that are no padding. A row that sees nothing is zeros here; in eager models it
    is NaN, or even.
    """
    if one.shape[2:] != other.shape[2:] or one.numel() != other.numel():
        return False
    one, other = one.nan_to_num(0.0), other.reshape(one.shape).float()  # some return heads beside texts
    if one.shape[1] > 1 and torch.equal(other, other[:, :1].expand_as(other)):
        one = one.mean(1, keepdim=True).expand_as(one)  # others return what their heads do on average
    even = other.amax(-1, keepdim=True) - other.amin(-1, keepdim=True) < 1e-6
    blind = (one == 0).all(-1, keepdim=True) & (even | other.isnan().any(-1, keepdim=True))
    other = other.masked_fill(blind, 0.0).nan_to_num(0.0)
    first = torch.allclose(one[0], other[0], atol=1e-4)
    rows = slice(padded, None) if min(one.shape[2:]) >= IDS.shape[1] else slice(None)
    return first and (len(one) < 2 or torch.allclose(one[1, :, rows], other[1, :, rows], atol=1e-4))


def of_words(model: nn.Module, found: list[Tensor]) -> list[Tensor]:
    """Of the maps that a model returned those from words to words.

    None of deformable attention, whose weights are of points in a picture; no states of linear attention; no outputs,
    which SAM's mask decoder gives by that name. Those of Longformer and LED, which hold each word's own window, become
    maps of the text.
    """
    if any("TwoWayAttention" in type(part).__name__ for part in model.modules()):
        found = [one for one in found if torch.allclose(one.sum(-1), torch.ones(()), atol=1e-3)]
    if any("LightningAttention" in type(part).__name__ for part in model.modules()):
        found = [one for one in found if one.shape[-1] != model.config.head_dim]
    if any("Deformable" in type(part).__name__ for part in model.modules()):
        found = [one for one in found if one.dim() == 4 and one.shape[0] == 2]
    reach = getattr(model.config, "attention_window", None)
    if not reach:
        return found
    wide = reach[0] if isinstance(reach, list) else reach
    return [_unrolled(one, wide) if one.shape[-1] == wide + 1 else one for one in found]


def _unrolled(local: Tensor, wide: int) -> Tensor:
    """[batch, head, word, position in window] -> [batch, head, word, word], the text as long as its windows made."""
    words = local.shape[2]
    made = torch.zeros(*local.shape[:2], -(-words // wide) * wide, -(-words // wide) * wide + wide)
    for word in range(words):
        made[:, :, word, word : word + wide + 1] = local[:, :, word]
    return made[..., wide // 2 : -(wide // 2)]


def one_pass(recipe: Recipe, how: str, plain: Any, expected: Sequence[Tensor]) -> str:
    """Whether the maps of one pass are those of the eager model; where its own output is another, that."""
    try:
        model = small.build(recipe, how)
        given = given_to(model, recipe)
        alone = None if how == "flex_attention" else run(model, given)  # compiled, and so rounded otherwise
    except Exception:
        return NONE  # it does not run so
    try:
        with capture(model) as seen:
            output = run(model, given)
    except Exception:
        try:
            with torch.compiler.set_stance("force_eager"):
                run(model, given)
        except Exception:
            return NONE  # nor without capture, where it is not compiled
        raise
    if alone is not None and differs(output, alone):
        return "its output is another under capture"
    found = compared([one for site in seen for one in seen.over_time(site)] + whole(seen), expected)
    off = difference(output, plain)
    return found if found == "equal" or off < 1e-2 else f"{OWN}, by {off:.2g}"


def whole(seen: Any) -> list[Tensor]:
    """Maps that were put together from windows or blocks."""
    made = []
    for site in seen:
        try:
            sizes = range(seen.assembled(site, 0)[-1][0].shape[0])
            one = torch.cat([seen.assembled(site, row)[-1][0][row, None] for row in sizes])
        except (ValueError, AttributeError):
            continue
        if one.shape != seen[site].shape:
            made.append(one)
    return made


def differs(output: Any, other: Any) -> bool:
    """Whether two calls gave other numbers, to the last bit."""
    pairs = zip(_tensors(output), _tensors(other), strict=True)
    return not all(torch.equal(one.nan_to_num(), two.nan_to_num()) for one, two in pairs)


def difference(output: Any, plain: Any) -> float:
    """Of the first tensors that two calls gave; of the second text, where they have positions, without its padding."""
    one, other = (next(_tensors(some), None) for some in (output, plain))
    if one is None or other is None or one.shape != other.shape or not one.is_floating_point():
        return 0.0
    off = one - other
    off = torch.cat([off[0].flatten(), off[1:, 3:].flatten() if one.dim() > 2 else off.new_empty(0)])
    if not torch.equal(one.isnan(), other.isnan()):
        return math.inf
    return float(off.nan_to_num().abs().max())


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from _tensors(value)


def written(recipe: Recipe, cache: str) -> str:
    """A text written word by word, its maps joined, beside those of one pass over it."""
    more = {"sliding_window": 5} if cache == "sliding" else {}
    default = transformers.AutoConfig.for_model(recipe.kind)
    if cache == "sliding" and not hasattr(getattr(default, "text_config", default), "sliding_window"):
        return NONE
    how = {"max_new_tokens": WRITTEN, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    how |= {"cache_implementation": "static"} if cache == "static" else {}
    model = small.build(recipe, fused(recipe), **more)
    model.generation_config.eos_token_id = None
    try:
        steps = model.generate(input_ids=IDS, attention_mask=OPEN, **how)
    except Exception:
        return NONE  # it does not run so
    with capture(model) as seen:
        captured = model.generate(input_ids=IDS, attention_mask=OPEN, **how)
    if differs(captured.logits, steps.logits):
        return "its output is another under capture"
    read, open_ = steps.sequences[:, :-1], torch.cat([OPEN, torch.ones(2, WRITTEN - 1, dtype=torch.long)], 1)
    eager = small.build(recipe, "eager", **more)
    given = {"input_ids": read, "attention_mask": open_}
    if "position_ids" in inspect.signature(eager.forward).parameters:
        given["position_ids"] = (open_.cumsum(1) - 1).clamp(min=0)
    with capture(eager) as whole_pass:
        output = eager(**given, output_attentions=True)
    expected = of_words(eager, list(attentions(output)))
    found = attempt(lambda: joined(seen, whole_pass, expected))
    off = float((torch.stack(steps.logits, 1) - output.logits[:, -WRITTEN:]).abs().max())
    return found if found == "equal" or off < 1e-4 else f"{OWN} over the whole text, by {off:.2g}"


def joined(seen: Capture, whole_pass: Capture, expected: Sequence[Tensor]) -> str:
    """Whether the joined maps of a text that was written are those of one pass."""
    sites = {site: whole_pass[site] for site in whole_pass if site in seen}
    for wanted in expected:
        site = next((one for one in sites if close(sites[one], wanted, 3)), None)
        if site is None:
            return f"none of the maps that it wrote is that of {'x'.join(map(str, wanted.shape))}"
        del sites[site]
        maps = AttentionMaps.over_time(seen, sites=site, batch=1)
        if maps.shape[1:] != wanted.shape[1:]:
            return f"{site}: {maps.shape[1:]} for {tuple(wanted.shape[1:])}"
        off = float((maps.weights[0, :, 3:] - wanted[1, :, 3:]).abs().max())
        if off > 1e-4:
            return f"{site}: off by {off:.2g}"
    return "equal"


def fused(recipe: Recipe) -> str:
    """How a type's text is written: fused, if it can be."""
    try:
        small.build(recipe, "sdpa")
    except ValueError:
        return "eager"
    return "sdpa"


def writes(recipe: Recipe) -> bool:
    return recipe.kind in small.writers() and recipe.of.endswith(("ForCausalLM", "LMHeadModel"))


def tried(kind: str) -> dict[str, str]:
    """The row of a type."""
    try:
        found = fitting(kind)
        if isinstance(found, str):
            return {"maps": f"not built or run: {found}"}
        recipe, _ = found
        model = small.build(recipe, "eager")
        plain, expected = reference(model, given_to(model, recipe))
    except Exception as error:
        return {"maps": f"not built or run: {said(error)}"}
    row = {"maps": str(len(expected)), "recipe": json.dumps(vars(recipe))}
    if not expected:
        return row | {"maps": "no reference: it returns no attentions"}
    for how, column in zip(WAYS, COLUMNS):
        row[column] = attempt(lambda how=how: one_pass(recipe, how, plain, expected), unsupported=how)
    for cache, column in zip(CACHES, COLUMNS[3:]):
        row[column] = attempt(lambda cache=cache: written(recipe, cache)) if writes(recipe) else NONE
    return row


def attempt(made: Callable[[], str], unsupported: str = "") -> str:
    try:
        return made()
    except Exception as error:
        if unsupported and "does not support" in str(error):
            return NONE
        return said(error)


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:150]}".replace("|", "/")


def late(*_: Any) -> None:
    raise TimeoutError(f"not done in {PATIENCE} seconds")


def work(kinds: Sequence[str]) -> None:
    """Try some types, one after the other, and keep each row as it comes."""
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    with STORE.open("a", encoding="utf-8") as store, torch.no_grad():
        for kind in kinds:
            print(kind, flush=True)  # the parent knows whose it was, if this process dies
            signal.alarm(PATIENCE)
            row = tried(kind)
            signal.alarm(0)
            store.write(json.dumps({"type": kind, **row}) + "\n")
            store.flush()


def kept() -> dict[str, dict[str, str]]:
    """The last row of each type."""
    lines = STORE.read_text(encoding="utf-8").splitlines() if STORE.is_file() else []
    return {row["type"]: row for row in map(json.loads, lines)}


def equal(row: dict[str, str]) -> bool:
    """Whether all that can be compared is equal: not what a model computes otherwise, also where nobody looks."""
    return row["maps"].isdigit() and all(row[column] == "equal" or not comparable(row[column]) for column in COLUMNS)


def comparable(cell: str) -> bool:
    return cell != NONE and not cell.startswith(OWN)


def in_turn(kinds: list[str]) -> None:
    """All of them, in a process that is started anew where it died."""
    STORE.parent.mkdir(exist_ok=True)
    while kinds:
        worker = subprocess.run([sys.executable, __file__, "--work", *kinds], stdout=subprocess.PIPE, encoding="utf-8")
        begun = worker.stdout.split()
        if worker.returncode == 0 and len(begun) == len(kinds):
            return
        if not begun:
            raise RuntimeError("the worker did not begin")
        with STORE.open("a", encoding="utf-8") as store:
            row = {"type": begun[-1], "maps": f"not built or run: its process ended with {worker.returncode}"}
            store.write(json.dumps(row) + "\n")
        kinds = kinds[len(begun) :]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="*", help="some types")
    options.add_argument("--again", action="store_true", help="those that were not equal, too")
    options.add_argument("--work", nargs="*", help=argparse_hidden())
    given = options.parse_args()
    if given.work:
        work(given.work)
        return
    every = small.kinds()
    done = {kind for kind, row in kept().items() if equal(row) or not given.again or hopeless(row)}
    in_turn(given.only or [kind for kind in (every[::20] if given.quick else every) if kind not in done])
    rows = [kept()[kind] for kind in given.only or every if kind in kept()]
    if given.only:
        print(*rows, sep="\n")
        return
    table = [[named(row), *(row.get(column, NONE) for column in HEADER[1:])] for row in rows if not equal(row)]
    report("families", "Families", HEADER, table, seeds=[0], quick=given.quick, notes=notes(rows))


def named(row: dict[str, str]) -> str:
    """A type, and why it is not equal where that is known."""
    kind = row["type"]
    return f"{kind}: {WHY[kind]}" if kind in WHY and row["maps"].isdigit() else kind


def hopeless(row: dict[str, str]) -> bool:
    """Whether a type cannot be built here, however small."""
    return any(word in row["maps"] for word in ("ModuleNotFoundError", "requires the", "no class of its own"))


def argparse_hidden() -> str:
    from argparse import SUPPRESS

    return SUPPRESS


def notes(rows: list[dict[str, str]]) -> list[str]:
    """How many are equal, in every way and column by column, of those that could be; and which."""
    ran = [row for row in rows if row["maps"].isdigit()]
    good = [row["type"] for row in rows if equal(row)]
    counts = []
    for column in COLUMNS:
        could = [row[column] for row in ran if comparable(row[column])]
        counts.append(f"{column} {sum(cell == 'equal' for cell in could)} of {len(could)}")
    return [
        f"{len(rows)} types, {len(ran)} of them with a reference; {len(good)} of these are equal in every way that "
        f"they have: {', '.join(counts)}.",
        f"Equal in every way: {', '.join(good)}.",
        "Not compared, since a model's own output is another there than under eager: "
        + ", ".join(f"{row['type']} ({column})" for row in ran for column in COLUMNS if row[column].startswith(OWN))
        + ".",
    ]


if __name__ == "__main__":
    main()
