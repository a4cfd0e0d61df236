"""Places on the axes of a table, by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral


def label_index(axes: Mapping[str, Sequence[str]], axis: str, label: object) -> int:
    """Return the position of a label on an axis.

    An integer in range is a position; any other is looked up as a label.

    Raises:
        LookupError: the axis has no such label, or several; the number is a place, and the label of another.
    """
    labels = list(axes[axis])
    places = [place for place, known in enumerate(labels) if known == str(label)]
    number = int(label) if isinstance(label, Integral) else None
    if number is not None and -len(labels) <= number < len(labels):
        place = number % len(labels)
        if places and place not in places:
            raise LookupError(
                f"{axis}: {number} is the place of {labels[place]!r}, and the label of place {places[0]}; give a "
                f"label, {labels[place]!r} or {str(label)!r}"
            )
        return place
    if not places:
        raise LookupError(f"{axis} has no {str(label)!r}; it has {', '.join(labels[:20])}")
    if len(places) > 1:
        listed = ", ".join(map(str, places[:-1]))
        raise LookupError(
            f"{axis} has {str(label)!r} at the places {listed} and {places[-1]}; give the number of one of them"
        )
    return places[0]
