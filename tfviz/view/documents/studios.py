"""Types of the documents of studios, the pages in which a trained model can be explored."""

from typing import Any, Literal, NotRequired

from tfviz.view.documents.heads import ImageSpec, Patches
from tfviz.view.documents.studio_base import CausalModel, SpecialTokens, StudioBase, StudioState


class WriteState(StudioState):
    """A text that is being written.

    Attributes:
        tree: all tokens that were written, [index of the previous token, id]; -1 is the prompt.
        node: the last token of the text that is shown.
        top_k: 0: all.
        top_p: 1: all.
    """

    prompt: str
    tree: list[list[int]]
    node: int
    temperature: float
    top_k: int
    top_p: float
    seed: int


class WriteDocument(StudioBase):
    """A language model.

    Attributes:
        context: tokens that it reads at most.
        max_tokens: the maximum number of tokens in a run.
    """

    kind: Literal["write"]
    context: int
    max_tokens: int
    state: WriteState


class PatchState(StudioState):
    """Two texts, and the place where the run of one takes an activation of the other's.

    Attributes:
        answer: the id of the answer to the clean text; -1: its likeliest next token.
        other: the id of the answer to the corrupt text; -1: its likeliest next token, but for `answer`.
        place: what is patched: the table ("streams" or "heads"), the layer, and the position or head; [] for nothing.
    """

    clean: str
    corrupt: str
    answer: int
    other: int
    place: list[Any]


class PatchDocument(StudioBase):
    """A language model whose activations can be replaced by those of another run.

    Attributes:
        context: tokens that it reads at most.
        layers: labels of the blocks, the first dimension of `streams`.
        attentions: labels of the attentions, the first dimension of `heads`.
        heads: heads of each attention.
        dim: of the residual stream.
        head_dim: of a head's output.
    """

    kind: Literal["patch"]
    context: int
    layers: list[str]
    attentions: list[str]
    heads: int
    dim: int
    head_dim: int
    state: PatchState


class ClassifyState(StudioState):
    """A text that is classified.

    Attributes:
        deleted: words that are left out, by index.
        replaced: [index of a word, what stands in its place].
        label: the label that words are shaded by, -1 for none, -2 for the chosen head, -3 for what the text is given.
    """

    text: str
    deleted: list[int]
    replaced: list[list[Any]]
    label: int


class ClassifyDocument(StudioBase):
    """A classifier.

    Attributes:
        labels: in the order of its logits.
        context: tokens that it reads at most.
    """

    kind: Literal["classify"]
    labels: list[str]
    special_tokens: SpecialTokens
    context: int
    state: ClassifyState


class ClassifyImageState(StudioState):
    """A picture that is classified.

    Attributes:
        hidden_patches: by number, row by row from the upper left.
        label: the index of the label whose probability is shown.
        shade: the shading of patches: attention, the effect of each on the label, or nothing.
    """

    hidden_patches: list[int]
    label: int
    shade: Literal["attention", "effect", "nothing"]


class ClassifyImageDocument(StudioBase):
    """A classifier of pictures; its program takes a boolean for each patch, True if it is hidden.

    Attributes:
        labels: names of the classes, in the order of the logits.
        picture: the picture that is drawn.
        patches: the position of each token on it.
        words: a label for each token.
    """

    kind: Literal["classify-image"]
    labels: list[str]
    picture: ImageSpec
    patches: Patches
    words: list[str]
    state: ClassifyImageState


class FillState(StudioState):
    """A text with masked tokens.

    Attributes:
        masked: indices of the masked tokens.
        filled: pairs [index, replacement id].
    """

    text: str
    masked: list[int]
    filled: list[list[int]]


class FillDocument(StudioBase):
    """A masked language model.

    Attributes:
        context: tokens that it reads at most.
        compare_with: a causal model, for comparison.
    """

    kind: Literal["fill"]
    special_tokens: SpecialTokens
    context: int
    compare_with: NotRequired[CausalModel]
    state: FillState


class TranslateState(StudioState):
    """A search for a translation.

    Attributes:
        width: the beam width.
        alpha: exponent of the length penalty.
        prefix: ids with which the translation must begin.
        steps: number of search steps after the prefix.
        node: [step, rank] of the selected text; null: the best.
        forced: prefixes that were tried.
    """

    sentence: str
    width: int
    alpha: float
    prefix: list[int]
    steps: int
    node: list[int] | None
    forced: list[list[int]]


class TranslateDocument(StudioBase):
    """An encoder-decoder.

    Attributes:
        max_tokens: the maximum length of a translation, including its end token.
        max_source: the maximum number of source tokens; null: any number.
        max_width: the maximum beam width.
        max_alpha: the maximum exponent of the length penalty.
        begin: the id that a translation begins with.
        end: the id that it ends with.
        suppressed: ids that are never written.
        source_end: ids that a source ends with.
        axes: names of the rows and columns of attention.
    """

    kind: Literal["translate"]
    max_tokens: int
    max_source: int | None
    max_width: int
    max_alpha: float
    begin: int
    end: int
    suppressed: list[int]
    source_end: list[int]
    axes: list[str]
    state: TranslateState


StudioDocument = (
    WriteDocument | PatchDocument | ClassifyDocument | ClassifyImageDocument | FillDocument | TranslateDocument
)
