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

from tfviz import look, sealed
from tfviz.files import home
from tfviz.look.map_groups import CROSS
from tfviz.suite import folder
from tfviz.text import subwords

WRITTEN = 40  # tokens that a decoder writes, which it is then shown reading
LONG = 1024  # tokens: from there on maps are kept as what they are made of
NUMBERED = re.compile(r"\.\d+\.")  # in the name of a weight: it is of a layer
BUFFERS = ("inv_freq", "position_ids", "masked_bias", "attn.bias")  # masks and tables: nothing learned
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
        ValueError: it would run code of its own, or from elsewhere; a file is damaged; config and weights are not of
            one model.
    """

    def __init__(self, name: str):
        try:
            import transformers
        except ImportError as error:
            raise ImportError("checkpoints of others need transformers: pip install transformers") from error
        self.name, self._library = name, transformers
        if home(name).exists():
            self.name = str(folder.checked(home(name)))
            found = sealed.plain_json(Path(self.name) / "config.json")
        elif name.startswith(("/", ".", "~")) or name.count("/") > 1 or "\\" in name:
            raise FileNotFoundError(f"there is no folder {name}")
        else:
            found, _ = self._loaded(transformers.PreTrainedConfig.get_config_dict)
        folder.data(found, name)
        self.config = self._loaded(transformers.AutoConfig.from_pretrained)
        _choose_own(self.config)
        self.model: nn.Module = self._model().eval()
        takes = inspect.signature(self.model.forward).parameters
        self.reads, self.sees = "input_ids" in takes, "pixel_values" in takes
        if not (self.reads or self.sees):
            raise ValueError(f"{type(self.model).__name__} takes neither text nor a picture: {', '.join(takes)}")

    def _model(self) -> Any:
        """The model that the config names, all of whose weights are there.

        Raises:
            ValueError: it names something else; a weight is missing, has another shape, or is of one more layer.
        """
        library = self._library
        name = next(iter(self.config.architectures or []), None)
        kind = getattr(library, name, library.AutoModel) if name and name.isidentifier() else library.AutoModel
        base = library.PreTrainedModel
        if kind is base or (kind is not library.AutoModel and not (isinstance(kind, type) and issubclass(kind, base))):
            raise ValueError(f"config.json of {self.name}: {name!r} is no model of transformers")
        more = {"config": self.config, "output_loading_info": True, "use_kernels": False, "weights_only": True}
        model, told = self._loaded(kind.from_pretrained, **more, ignore_mismatched_sizes=True)
        missing = sorted(key for key in told["missing_keys"] if "pooler" not in key)
        odd = sorted(key for key in told["unexpected_keys"] if NUMBERED.search(key) and not key.endswith(BUFFERS))
        for keys, said in ((missing, "holds no"), (odd, "also holds"), (_mismatched(told), "holds other sizes of")):
            if keys:
                some = f"{', '.join(keys[:3])}{f' and {len(keys) - 3} more' if len(keys) > 3 else ''}"
                raise ValueError(f"{self.name} {said} {some}: its config.json and its weights are not of one model")
        return model

    def _loaded(self, load: Any, **more: Any) -> Any:
        """What transformers loads; whatever goes wrong in a sentence."""
        what = getattr(getattr(load, "__self__", load), "__name__", "part")
        before = self._library.logging.get_verbosity()
        self._library.logging.set_verbosity_error()
        try:
            return load(self.name, trust_remote_code=False, **more)
        except Exception as error:  # a damaged file may be told in any way
            said = (str(error).strip().partition("\n")[0] or type(error).__name__)[:200]
            if "weights_only" in str(error):
                raise ValueError(
                    f"the weights of {self.name} are a pickle that may run code, which is not opened; save them as "
                    "safetensors"
                ) from error
            if "trust_remote_code" in str(error):
                raise ValueError(f"{self.name} brings code of its own, which is not run here") from error
            if Path(self.name).is_dir():
                raise ValueError(f"cannot have {what} of {self.name}: {said}; {folder.WRITES}") from error
            how = f"fetch it where there is a network (hf download {self.name} --local-dir FOLDER) and give the folder"
            raise OSError(f"cannot have {what} of {self.name}: {said}; {how}") from error
        finally:
            self._library.logging.set_verbosity(before)

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
        if text.strip() and not self.reads:
            raise ValueError(f"{kind} looks at a picture alone: leave the text away")
        made = self._seen(text, picture) if self.sees else Given(_tensors(self.tokenizer(text, return_tensors="pt")))
        if "input_ids" in made.inputs:
            if not made.inputs["input_ids"].numel():
                raise ValueError(
                    f"{self.name} makes no token of this text: its folder needs its tokenizer, as tokenizer.json"
                )
            model: Any = self.model
            table = getattr(model.get_input_embeddings(), "num_embeddings", None)
            last = int(made.inputs["input_ids"].max())
            if table is not None and last >= table:
                raise ValueError(f"the tokenizer of {self.name} makes the id {last}, and its model has {table} tokens")
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
        return self._loaded(self._library.AutoTokenizer.from_pretrained)

    def _seen(self, text: str, picture: Any) -> Given:
        if not self.reads:
            inputs = self._loaded(self._library.AutoImageProcessor.from_pretrained)(images=picture, return_tensors="pt")
        else:
            processor = self._loaded(self._library.AutoProcessor.from_pretrained)
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
        return {name: _named(name, maps, given) for name, maps in found.items()}, seen.summary


def _tensors(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if isinstance(value, Tensor)}


def _mismatched(told: Mapping[str, Any]) -> list[str]:
    """Names of weights whose sizes differ, from what transformers tells of them."""
    return sorted(key if isinstance(key, str) else str(key[0]) for key in told["mismatched_keys"])


def _choose_own(config: Any) -> None:
    """Let transformers choose the code of attention and experts; a name in a config may make it fetch some."""
    eager = config._attn_implementation == "eager"
    config._attn_implementation = "eager" if eager else None
    config._experts_implementation = None


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
