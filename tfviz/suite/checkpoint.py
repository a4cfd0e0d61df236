"""A checkpoint of others, by name or folder: the model, what it is given, and the words of both sides of its maps."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import look
from tfviz.look.grouping import CROSS
from tfviz.text import subwords

WRITTEN = 40  # tokens that a decoder writes, which it is then shown reading
LONG = 1024  # tokens: from there on maps are kept as what they are made of
DECODER = re.compile(r"(^|\.)decoder(\.|$)")


@dataclass
class Given:
    """What a model is given.

    Attributes:
        inputs: by the names that it takes.
        words: of the text that it reads; none, of a picture.
        written: words of the text that its decoder reads.
        picture: as it is given to it, [channel, height, width].
    """

    inputs: dict[str, Any]
    words: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    picture: Tensor | None = None


class Checkpoint:
    """A model of transformers and what prepares its input, from a folder or from the Hub.

    Args:
        name: a folder as `save_pretrained` writes it, or a name on the Hub.

    Raises:
        ImportError: transformers is not installed.
        OSError: there is no such checkpoint here, and none can be had.
        ValueError: it would run code of its own.
    """

    def __init__(self, name: str):
        try:
            import transformers
        except ImportError as error:
            raise ImportError("checkpoints of others need transformers: pip install transformers") from error
        self.name, self._library = name, transformers
        if Path(name).expanduser().exists():
            self.name = str(_folder(Path(name).expanduser()))
        self.config = self._loaded(transformers.AutoConfig)
        named = next(iter(self.config.architectures or []), "AutoModel")
        self.model: nn.Module = self._loaded(getattr(transformers, named, transformers.AutoModel)).eval()
        takes = inspect.signature(self.model.forward).parameters
        self.reads, self.sees = "input_ids" in takes, "pixel_values" in takes
        if not (self.reads or self.sees):
            raise ValueError(f"{type(self.model).__name__} takes neither text nor a picture: {', '.join(takes)}")

    def _loaded(self, kind: Any) -> Any:
        """What `from_pretrained` gives; its errors in a sentence."""
        try:
            return kind.from_pretrained(self.name, trust_remote_code=False)
        except (OSError, KeyError) as error:
            said = str(error).strip().partition("\n")[0][:200]
            how = f"fetch it where there is a network (hf download {self.name} --local-dir FOLDER) and give the folder"
            if Path(self.name).is_dir():
                how = "its folder must hold config.json, weights and tokenizer, as save_pretrained writes them"
            raise OSError(f"cannot have {kind.__name__} of {self.name}: {said}; {how}") from error
        except ValueError as error:
            if "trust_remote_code" in str(error):
                raise ValueError(f"{self.name} brings code of its own, which is not run here") from error
            raise

    @property
    def size(self) -> int:
        """Parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def given(self, text: str, picture: Any = None, written: Tensor | None = None) -> Given:
        """A text, a picture, or both as the model takes them.

        Args:
            written: ids of the text that a decoder reads; None: what the model writes itself.

        Raises:
            ValueError: it takes the other; the text is longer than it takes.
        """
        kind = type(self.model).__name__
        if self.sees and picture is None:
            raise ValueError(f"{kind} looks at pictures: give one with --image FILE")
        if picture is not None and not self.sees:
            raise ValueError(f"{kind} reads text and sees no pictures: leave --image away")
        if self.reads and not text.strip():
            raise ValueError(f"{kind} reads text: give one")
        made = self._seen(text, picture) if self.sees else Given(_tensors(self.tokenizer(text, return_tensors="pt")))
        if "input_ids" in made.inputs:
            if not made.inputs["input_ids"].numel():
                raise ValueError(
                    f"{self.name} makes no token of this text: its folder needs its tokenizer, as tokenizer.json"
                )
            made.words = self.words(made.inputs["input_ids"][0])
            most = getattr(self.config, "max_position_embeddings", None)
            if type(most) is int and len(made.words) > most > 0:
                raise ValueError(
                    f"this text has {len(made.words)} tokens; {self.name} takes {most}: give a shorter one"
                )
        if getattr(self.config, "is_encoder_decoder", False):
            made.inputs["decoder_input_ids"] = self._write(made) if written is None else written
            made.written = self.words(made.inputs["decoder_input_ids"][0])
        return made

    @cached_property
    def tokenizer(self) -> Any:
        return self._loaded(self._library.AutoTokenizer)

    def _seen(self, text: str, picture: Any) -> Given:
        if not self.reads:
            inputs = self._loaded(self._library.AutoImageProcessor)(images=picture, return_tensors="pt")
        else:
            processor = self._loaded(self._library.AutoProcessor)
            if getattr(processor, "chat_template", None):
                said = [{"type": "image", "image": picture}, {"type": "text", "text": text}]
                inputs = processor.apply_chat_template(
                    [{"role": "user", "content": said}], tokenize=True, return_dict=True, return_tensors="pt",
                    add_generation_prompt=True,
                )  # fmt: skip
            else:
                inputs = processor(text=text, images=picture, return_tensors="pt")
        pixels = inputs["pixel_values"]
        return Given(_tensors(inputs), picture=pixels[0] if pixels.dim() == 4 and pixels.shape[1] in (1, 3) else None)

    def _write(self, made: Given) -> Tensor:
        """What the model writes; of one that only reads, its text once more."""
        model: Any = self.model
        if not model.can_generate():
            return made.inputs["input_ids"]
        with torch.no_grad():
            return model.generate(**made.inputs, max_new_tokens=WRITTEN, do_sample=False)

    def words(self, ids: Tensor) -> list[str]:
        """A readable word for each token."""
        vocab = subwords.own(self.tokenizer)
        made = vocab.words if isinstance(vocab, subwords.Subwords) else vocab.convert_ids_to_tokens
        return list(made(ids.tolist()))

    def groups(self, given: Given) -> tuple[dict[str, look.AttentionMaps], str]:
        """The maps of one pass, those that fit together by name, and a line on what was seen."""
        longest = max(len(given.words), len(given.written))
        with torch.no_grad(), look.capture(self.model, dtype=torch.uint8, lazy=longest > LONG) as seen:
            self.model(**given.inputs)
        found = look.groups(seen, firings="last")
        return {name: _named(name, maps, given) for name, maps in found.items()}, seen.told


def _tensors(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if isinstance(value, Tensor)}


def _folder(path: Path) -> Path:
    if not path.is_dir() or not (path / "config.json").is_file():
        raise FileNotFoundError(
            f"{path} is no checkpoint: give a folder with config.json and its weights, as save_pretrained writes it"
        )
    return path


def _named(name: str, maps: look.AttentionMaps, given: Given) -> look.AttentionMaps:
    """Maps with the words of their sides, where these are as many."""
    decodes = bool(DECODER.search(name)) or not given.words
    rows = given.written if decodes and given.written else given.words
    cols = given.words if CROSS.search(name) else rows
    fit: Mapping[str, Any] = {
        side: words if len(words) == count else None
        for side, words, count in zip(("rows", "cols"), (rows, cols), maps.shape[2:])
    }
    return look.AttentionMaps(maps.layers, **fit, mask=maps.mask, sites=maps.sites, provenance=maps.provenance)
