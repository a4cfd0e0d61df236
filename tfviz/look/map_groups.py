"""Groups of a capture's patterns by kind and shape, such as those of an encoder, or of a stage of a vision model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tfviz.checks import one_of
from tfviz.look import map_layers
from tfviz.look.capture_result import Capture
from tfviz.look.map_layers import INVOCATION_INDEX
from tfviz.look.maps import AttentionMaps
from tfviz.look.recorder import Invocation
from tfviz.schema import describe

# parts of a path that mark cross-attention
CROSS_ATTENTION_NAME = re.compile(r"cross|encoder_?attn|enc_?dec|encoder_?decoder_?att|src_attn", re.IGNORECASE)
LAYER_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # a part of a path that is a number
TokenLabels = Sequence[str] | Mapping[str, Sequence[str]]
Shape = tuple[int, ...]


def groups(
    captured: Capture,
    query_tokens: TokenLabels | None = None,
    key_tokens: TokenLabels | None = None,
    *,
    batch: int = 0,
    invocations: str | None = None,
) -> dict[str, AttentionMaps]:
    """Return the maps of all patterns of a capture, one entry for each kind and shape of pattern.

    The entries have names such as `encoder.layer.*.attention`. `view.groups(**look.groups(captured))` shows them all.

    Args:
        captured: the capture.
        query_tokens: tokens of the queries, for groups with that number of queries; or tokens by glob of the group's
            name. A glob may match from any part of the path on: "encoder*" also matches "model.encoder...".
        key_tokens: the same for keys. Without `key_tokens`, cross-attention takes the tokens that `query_tokens` has
            for another group: for an encoder-decoder, `query_tokens={"encoder*": source, "decoder*": target}` is
            enough.
        batch: as in `AttentionMaps.from_capture`.
        invocations: as in `AttentionMaps.from_capture`. Invocations of different shapes form separate groups, such as
            `visual.blocks.*.attn, 1 of 2`; with None, this also holds for invocations that attend only to themselves,
            such as those of several pictures.

    Raises:
        LookupError: no pattern was captured, or a glob matches no group; the message lists the groups.
        ValueError: there is no such batch element, or the number of tokens fits no group.
    """
    if invocations is not None:
        one_of(("last", "layers"), invocations=invocations)
    every = {site: captured.assembled(site, batch) for site in map_layers.patterns(captured, "*")}
    pictures = {site: some for site, some in every.items() if invocations is None and _are_pictures(some)}
    others = {site: some for site, some in every.items() if site not in pictures}
    chosen = {**map_layers.choose_invocations(pictures, "layers"), **map_layers.choose_invocations(others, invocations)}
    alike: dict[tuple[str, Shape], dict[str, Invocation]] = {}
    for label, invocation in chosen.items():
        kind = LAYER_NUMBER.sub("*", INVOCATION_INDEX.sub("", label)), tuple(invocation[0].shape[1:])
        alike.setdefault(kind, {})[label] = invocation
    named: dict[str, dict[str, Invocation]] = {}
    shapes: dict[str, Shape] = {}
    for (_, shape), members in alike.items():
        name = _group_name(list(members))
        name = f"{name} ({' x '.join(map(str, shape))})" if name in named else name
        named[name], shapes[name] = members, shape
    _check_labels({name: shape[1] for name, shape in shapes.items()}, query_tokens, "query_tokens")
    _check_labels({name: shape[2] for name, shape in shapes.items()}, key_tokens, "key_tokens")
    return {
        name: AttentionMaps._from_invocations(
            captured, members, *_words_of_both_axes(query_tokens, key_tokens, name, shapes[name]), batch
        )
        for name, members in named.items()
    }


def _are_pictures(some: Sequence[Invocation]) -> bool:
    """Return whether invocations differ in size and each attends only to itself, so they are not steps of a text."""
    shapes = {tuple(weights.shape[2:]) for weights, _ in some}
    return len(shapes) > 1 and all(queries == keys > 1 for queries, keys in shapes)


def _match_start(name: str, glob: str) -> int | None:
    """Return the index of the first part of a path from which it matches a glob; None if it does not match.

    A decoder's `encoder_attn` does not match `encoder*`.
    """
    parts = name.split(".")
    starts = [0, *(at for at in range(1, len(parts)) if not CROSS_ATTENTION_NAME.search(parts[at]))]
    return next((at for at in starts if fnmatchcase(".".join(parts[at:]), glob)), None)


def _best_glob(tokens: Mapping[str, Sequence[str]], name: str) -> str | None:
    """Return the glob that best matches a group: the one with the earliest match, the first if several tie."""
    matching = [(at, glob) for glob in tokens if (at := _match_start(name, glob)) is not None]
    return min(matching, key=lambda match: match[0])[1] if matching else None


def _check_labels(counts: Mapping[str, int], tokens: TokenLabels | None, axis: str) -> None:
    """Raise an error if tokens fit no group; `counts` holds the number of positions of each group on this axis."""
    if isinstance(tokens, Mapping):
        for glob, labels in tokens.items():
            if not isinstance(glob, str) or not isinstance(labels, Sequence):
                raise TypeError(
                    f"{axis} is given by the name of a group, {{'encoder*': tokens}}; {glob!r} has {describe(labels)}"
                )
            if all(_match_start(name, glob) is None for name in counts):
                raise LookupError(f"{axis}: no group matches {glob!r}; there are: {', '.join(counts)}")
    elif tokens is not None and len(tokens) not in counts.values():
        each = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise ValueError(f"{axis} has {len(tokens)} labels, but no group has that many: {each}")


def _group_name(labels: Sequence[str]) -> str:
    """Return the common path of the sites, with `*` where they differ, and the invocations if they are not all."""
    sites = list(dict.fromkeys(INVOCATION_INDEX.sub("", label) for label in labels))
    paths = [site.removesuffix("pattern").removesuffix(".").split(".") for site in sites]
    shared = [parts[0] if len(set(parts)) == 1 else "*" for parts in zip(*paths)]
    numbers = [(int(match[1]), int(match[2])) for label in labels if (match := INVOCATION_INDEX.search(label))]
    name, chosen = ".".join(shared) or "attention", sorted({number for number, _ in numbers})
    if not numbers or chosen == list(range(1, numbers[0][1] + 1)):
        return name
    return f"{name}, {', '.join(map(str, chosen))} of {numbers[0][1]}"


def _words_of_both_axes(
    query_tokens: TokenLabels | None, key_tokens: TokenLabels | None, name: str, shape: Shape
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the tokens of a group's queries and keys."""
    _, queries, keys = shape
    if key_tokens is None and isinstance(query_tokens, Mapping) and CROSS_ATTENTION_NAME.search(name):
        query_glob = _best_glob(query_tokens, name)
        others = (some for glob, some in query_tokens.items() if glob != query_glob and len(some) == keys)
        return _labels_for_group(query_tokens, name, queries), next(others, None)
    return _labels_for_group(query_tokens, name, queries), _labels_for_group(key_tokens, name, keys)


def _labels_for_group(tokens: TokenLabels | None, name: str, count: int) -> Sequence[str] | None:
    if isinstance(tokens, Mapping):
        glob = _best_glob(tokens, name)
        return None if glob is None else tokens[glob]
    return tokens if tokens is not None and len(tokens) == count else None
