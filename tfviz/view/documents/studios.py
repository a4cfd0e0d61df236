"""Types of the documents of studios, the pages in which a trained model can be explored."""

from typing import Any, Literal, NotRequired

from tfviz.view.documents.heads import ImageSpec, Patches
from tfviz.view.documents.studio_base import CausalModel, SpecialTokens, StudioBase, StudioState


class WriteState(StudioState):
    """A text that is being written.

    Attributes:
        tree: all generated tokens, as [index of the previous token, id]; the index -1 stands for the prompt.
        node: the index in `tree` of the last token that is shown; -1: only the prompt is shown.
        top_k: the number of tokens to sample from; 0: all.
        top_p: the probability mass of the tokens to sample from; 1: all tokens.
    """

    prompt: str
    tree: list[list[int]]
    node: int
    temperature: float
    top_k: int
    top_p: float
    seed: int


class WriteDocument(StudioBase):
    """A causal language model that continues a prompt.

    Attributes:
        context: the maximum number of tokens that the model reads.
        max_new_tokens: the maximum number of tokens in a run.
    """

    kind: Literal["write"]
    context: int
    max_new_tokens: int
    state: WriteState


class PatchState(StudioState):
    """The clean and the corrupt text, and the activation that is patched.

    Attributes:
        clean_answer_id: the id of the answer to the clean text; -1: its likeliest next token.
        corrupt_answer_id: the id of the answer to the corrupt text; -1: its likeliest next token other
            than `clean_answer_id`.
        target: what is patched: the table ("residual" or "heads"), the layer, and the position or head; [] for nothing.
    """

    clean: str
    corrupt: str
    clean_answer_id: int
    corrupt_answer_id: int
    target: list[Any]


class PatchDocument(StudioBase):
    """A language model whose activations can be replaced by those of another run.

    Attributes:
        context: the maximum number of tokens that the model reads.
        layers: labels of the blocks, the first dimension of the program's `residual`.
        attentions: labels of the attention modules, the first dimension of the program's `heads`.
        heads: the number of heads of each attention.
        dim: the width of the residual stream.
        head_dim: the width of a head's output.
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
        deleted: indices of the words that are left out.
        replaced: replaced words, as [index of the word, replacement].
        label: the index of the label by which words are shaded; -1: none; -2: the chosen head; -3: the predicted label.
    """

    text: str
    deleted: list[int]
    replaced: list[list[Any]]
    label: int


class ClassifyDocument(StudioBase):
    """A text classifier.

    Attributes:
        labels: names of the classes, in the order of the logits.
        context: the maximum number of tokens that the model reads.
    """

    kind: Literal["classify"]
    labels: list[str]
    special_tokens: SpecialTokens
    context: int
    state: ClassifyState


class ClassifyImageState(StudioState):
    """A picture that is classified.

    Attributes:
        hidden_patches: indices of the hidden patches, row by row from the upper left.
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
        image: the picture that is drawn.
        patches: the grid that the tokens form on the picture.
        tokens: a label for each token.
    """

    kind: Literal["classify-image"]
    labels: list[str]
    image: ImageSpec
    patches: Patches
    tokens: list[str]
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
        context: the maximum number of tokens that the model reads.
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
        num_beams: the beam width.
        length_penalty: exponent of the length penalty.
        prefix: ids with which the translation must begin.
        steps: number of search steps after the prefix.
        node: [step, rank] of the selected text; null: the best.
        forced: prefixes that were tried.
    """

    sentence: str
    num_beams: int
    length_penalty: float
    prefix: list[int]
    steps: int
    node: list[int] | None
    forced: list[list[int]]


class TranslateDocument(StudioBase):
    """An encoder-decoder.

    Attributes:
        max_new_tokens: the maximum length of a translation, including its end token.
        max_source: the maximum number of source tokens; null: any number.
        max_num_beams: the maximum beam width.
        max_length_penalty: the maximum exponent of the length penalty.
        bos_id: the id that a translation begins with.
        eos_id: the id that it ends with.
        suppressed_ids: ids that are never generated.
        source_eos_ids: ids that a source ends with.
        axes: names of the rows and columns of attention.
    """

    kind: Literal["translate"]
    max_new_tokens: int
    max_source: int | None
    max_num_beams: int
    max_length_penalty: float
    bos_id: int
    eos_id: int
    suppressed_ids: list[int]
    source_eos_ids: list[int]
    axes: list[str]
    state: TranslateState


StudioDocument = (
    WriteDocument | PatchDocument | ClassifyDocument | ClassifyImageDocument | FillDocument | TranslateDocument
)
