"""Look up positions on the axes of a table by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral


def label_index(axes: Mapping[str, Sequence[str]], axis: str, label: object) -> int:
    """Return the position of a label on an axis.

    An integer in range is a position; any other value is looked up as a label.

    Args:
        axes: name of an axis -> its labels.
        axis: the name of the axis.
        label: the label, or a position, counted from the end if negative.

    Raises:
        LookupError: the label is at no or several positions; an integer is a position, and also the label of another.
    """
    labels = list(axes[axis])
    indices = [index for index, known in enumerate(labels) if known == str(label)]
    number = int(label) if isinstance(label, Integral) else None
    if number is not None and -len(labels) <= number < len(labels):
        index = number % len(labels)
        if indices and index not in indices:
            raise LookupError(
                f"{axis}: {number} is the place of {labels[index]!r}, and the label of place {indices[0]}; give a "
                f"label, {labels[index]!r} or {str(label)!r}"
            )
        return index
    if not indices:
        raise LookupError(f"{axis} has no {str(label)!r}; it has {', '.join(labels[:20])}")
    if len(indices) > 1:
        listed = ", ".join(map(str, indices[:-1]))
        raise LookupError(
            f"{axis} has {str(label)!r} at the places {listed} and {indices[-1]}; give the number of one of them"
        )
    return indices[0]
