"""Types that the documents of all studios share."""

from typing import Any, NotRequired, TypedDict

from tfviz.view.documents.heads import HeadsState


class SpecialTokens(TypedDict):
    """The ids that every text begins and ends with; null: no such id."""

    prefix_id: int | None
    suffix_id: int | None


class CausalModel(TypedDict):
    """A causal model for comparison with the model of a studio.

    Attributes:
        tokenizer: the index of its tokenizer.
        prefix_id: the id that its texts begin with.
        context: the maximum number of tokens.
    """

    tokenizer: int
    prefix_id: int | None
    context: int


class StudioState(HeadsState):
    """The choices of the reader of a studio, besides those of heads.

    Attributes:
        ablated_heads: heads that are switched off, [site, head].
        head_map_open: whether the map of the chosen head is shown in full.
        head_importance: whether each map has a bar below it, of what the answer loses without its head.
    """

    ablated_heads: list[list[Any]]
    head_map_open: bool
    head_importance: bool


class StudioBase(TypedDict):
    """The fields that the documents of all studios have.

    Attributes:
        programs: the model as programs by name; with a kernel, only the sites that can be captured.
        tokenizers: the tokenizers as `to_spec` of `tfviz.text` returns them.
        note: a sentence at the end of the page.
        examples: experiments that the author proposes, [name, the state that it sets].
    """

    title: str
    programs: NotRequired[dict[str, Any]]
    tokenizers: list[dict[str, Any]]
    note: NotRequired[str]
    examples: list[list[Any]]
