"""Check that the labels of a classifier are distinct and match its logits in number."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tfviz.view.studio.requirements import check_finite


def check_labels(labels: Sequence[str]) -> None:
    """Raise ValueError unless there are at least two labels, all different."""
    if isinstance(labels, str) or len(labels) < 2:
        raise ValueError(f"labels is {labels!r}; give a list of two names or more")
    if len({*labels}) < len(labels):
        raise ValueError(f"labels are {list(labels)}, with a duplicate; give each class its own name")


def check_label_logits(labels: Sequence[str], logits: Tensor, what: str) -> None:
    """Raise ValueError unless logits are finite, [1, label]; `what` names the classified input in messages."""
    if logits.dim() == 3:
        raise ValueError(
            f"the model returns numbers for each part of a {what}, {list(logits.shape)}, as a language model does; "
            f"give a model that returns [1, {len(labels)}], one for each of labels, such as models.Classifier or an "
            "AutoModelForSequenceClassification; view.write and view.fill show language models"
        )
    if logits.shape != (1, len(labels)):
        raise ValueError(
            f"labels has {len(labels)} names, and for one {what} the model returns numbers of the shape "
            f"{list(logits.shape)}; it must be [1, {len(labels)}]"
        )
    check_finite(logits)
