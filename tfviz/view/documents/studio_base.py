"""What the documents of all studios share."""

from typing import Any, NotRequired, TypedDict

from tfviz.view.documents.heads import HeadsState


class SpecialTokens(TypedDict):
    """Ids that every text begins and ends with; null for none."""

    before: int | None
    after: int | None


class CausalModel(TypedDict):
    """A model beside the one of a studio, which reads from the left.

    Attributes:
        vocabulary: the index of its vocabulary.
        before: the id that its texts begin with.
        context: tokens that it reads at most.
    """

    vocabulary: int
    before: int | None
    context: int


class StudioState(HeadsState):
    """What the reader of a studio chooses, beside the heads to look at.

    Attributes:
        off: heads that are switched off, [site, head].
        open: whether the map of the chosen head is shown in full.
    """

    off: list[list[Any]]
    open: bool


class StudioBase(TypedDict):
    """What all studios have.

    Attributes:
        programs: the model, by what is asked of it; where a kernel has it, only the sites that can be seen.
        vocabularies: as `to_spec` of `tfviz.text` describes them.
        note: a sentence below all.
        tries: experiments that the author proposes, [name, the state that it sets].
    """

    title: str
    programs: NotRequired[dict[str, Any]]
    vocabularies: list[dict[str, Any]]
    note: NotRequired[str]
    tries: list[list[Any]]
