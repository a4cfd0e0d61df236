"""A checkpoint of transformers: the model, its inputs, and attention maps with the tokens of both sides.

A checkpoint selects a model class of transformers and provides its weights; no code in or named by it is run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import look
from tfviz.look.map_groups import CROSS_ATTENTION_NAME
from tfviz.text import subwords

MAX_NEW_TOKENS = 40  # that a decoder generates as its text
MIN_LAZY_TOKENS = 1024  # maps of longer texts are computed when they are needed
LAYER_WEIGHT = re.compile(r"\.\d+\.")  # in the name of a layer's weight
BUFFER_SUFFIXES = ("inv_freq", "position_ids", "masked_bias", "attn.bias")  # masks and tables, which are not learned
HUB_NAME = re.compile(r"(?!\.)[\w.-]+(/[\w.-]+)?")  # anything else is the path of a folder
DECODER_NAME = re.compile(r"(^|\.)decoder(\.|$)")


@dataclass
class Inputs:
    """The inputs of a model.

    Attributes:
        arguments: arguments of `forward`, by name.
        tokens: tokens of the text; empty for a picture.
        decoder_tokens: tokens of the decoder's text.
        picture: [channel, height, width], as passed to the model.
    """

    arguments: dict[str, Any]
    tokens: list[str] = field(default_factory=list)
    decoder_tokens: list[str] = field(default_factory=list)
    picture: Tensor | None = None


class Checkpoint:
    """A model of transformers with its tokenizer or processor.

    Args:
        name: a folder that `save_pretrained` wrote, or a name on the Hub.

    Raises:
        ImportError: transformers is not installed.
        ValueError: there is no such checkpoint, it is damaged, it needs other code, or its config and weights belong to
            different models.
    """

    def __init__(self, name: str):
        try:
            import transformers
        except ImportError as error:
            raise ImportError("checkpoints need transformers: pip install transformers") from error
        folder = Path(name).expanduser()
        if not folder.is_dir() and not HUB_NAME.fullmatch(name):
            found = "a file" if folder.exists() else "not there"
            raise ValueError(f"{name} is {found}; give a folder that save_pretrained wrote, or a name on the Hub: gpt2")
        self.name, self._library = str(folder) if folder.is_dir() else name, transformers
        if (folder / "adapter_config.json").exists():
            raise ValueError(f"{name} holds an adapter, which changes another model: merge it into that, and save it")
        content, _ = self._load(transformers.PreTrainedConfig.get_config_dict)
        _check_config(content, name)
        self.config = self._load(transformers.AutoConfig.from_pretrained)
        # transformers then chooses the code of attention and experts; a name in a config may make it fetch some
        self.config._attn_implementation = "eager" if self.config._attn_implementation == "eager" else None
        self.config._experts_implementation = None
        self.model: nn.Module = self._load_model().eval()
        self.size = sum(parameter.numel() for parameter in self.model.parameters())
        arguments = inspect.signature(self.model.forward).parameters
        self.reads_text, self.sees_pictures = "input_ids" in arguments, "pixel_values" in arguments

    def _load_model(self) -> Any:
        """Load the model that the config names, and reject it if weights do not fit, since they would remain random."""
        library, name = self._library, next(iter(self.config.architectures or []), None)
        kind: Any = getattr(library, name, None) if name else library.AutoModel
        base = library.PreTrainedModel
        is_model = isinstance(kind, type) and issubclass(kind, base) and kind is not base
        if not is_model and kind is not library.AutoModel:
            raise ValueError(f"config.json of {self.name}: {name!r} is not a model of transformers")
        model, report = self._load(
            kind.from_pretrained, config=self.config, output_loading_info=True, use_kernels=False, weights_only=True,
            ignore_mismatched_sizes=True,
        )  # fmt: skip
        unexpected = (key for key in report["unexpected_keys"] if LAYER_WEIGHT.search(key))
        problems = {
            "holds no": [key for key in report["missing_keys"] if "pooler" not in key],
            "also holds": [key for key in unexpected if not key.endswith(BUFFER_SUFFIXES)],
            "holds other sizes of": [key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]],
        }
        for problem, keys in problems.items():
            if keys:
                some = f"{', '.join(sorted(keys)[:3])}{f' and {len(keys) - 3} more' if len(keys) > 3 else ''}"
                raise ValueError(f"{self.name} {problem} {some}: its config.json and weights are not of one model")
        return model

    def _load(self, loader: Callable[..., Any], **options: Any) -> Any:
        """Call a loading function of transformers with logging off, and report an error in a sentence."""
        logging = self._library.logging
        verbosity = logging.get_verbosity()
        logging.set_verbosity_error()
        try:
            return loader(self.name, trust_remote_code=False, **options)
        except Exception as error:  # a damaged file makes transformers raise anything
            part = getattr(getattr(loader, "__self__", loader), "__name__", "part")
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            if "trust_remote_code" in str(error):
                reason = "it brings code of its own, which is not run here"
            advice = "its folder must hold config.json, weights and tokenizer, as save_pretrained writes them"
            if not Path(self.name).is_dir():
                advice = (
                    f"there is no folder {self.name} here; from the Hub, hf download {self.name} --local-dir FOLDER"
                )
            raise ValueError(f"cannot load {part} of {self.name}: {reason}; {advice}") from error
        finally:
            logging.set_verbosity(verbosity)

    @cached_property
    def tokenizer(self) -> Any:
        return self._load(self._library.AutoTokenizer.from_pretrained)

    def prepare(self, text: str, picture: Any = None, decoder_ids: Tensor | None = None) -> Inputs:
        """Return the model's inputs for a text, a picture, or both.

        Args:
            text: the text, if any.
            picture: the picture, if any.
            decoder_ids: the ids of the decoder's text; None: those that the model generates.

        Raises:
            ValueError: the model needs a text or a picture that is missing, or the text is too long.
        """
        kind = type(self.model).__name__
        if self.sees_pictures != (picture is not None):
            raise ValueError(f"{kind} {'needs a picture: --image FILE' if self.sees_pictures else 'sees no pictures'}")
        if self.reads_text != bool(text.strip()):
            raise ValueError(f"{kind} {'reads text: give one' if self.reads_text else 'reads no text'}")
        processed = self._process(text, picture)
        inputs = Inputs({name: value for name, value in processed.items() if isinstance(value, Tensor)})
        pixels = inputs.arguments.get("pixel_values")
        if pixels is not None and pixels.dim() == 4 and pixels.shape[1] in (1, 3):  # one picture, not cut into pieces
            inputs.picture = pixels[0]
        ids = inputs.arguments.get("input_ids")
        if ids is not None:
            inputs.tokens = self.tokens(ids[0])
            longest = getattr(self.config, "max_position_embeddings", None) or len(inputs.tokens)
            if not inputs.tokens:
                raise ValueError(f"{self.name} makes no token of this text: its folder needs tokenizer.json")
            if len(inputs.tokens) > longest:
                raise ValueError(f"this text has {len(inputs.tokens)} tokens; {self.name} takes {longest}")
        if getattr(self.config, "is_encoder_decoder", False):
            inputs.arguments["decoder_input_ids"] = self._generate(inputs) if decoder_ids is None else decoder_ids
            inputs.decoder_tokens = self.tokens(inputs.arguments["decoder_input_ids"][0])
        return inputs

    def _process(self, text: str, picture: Any) -> Mapping[str, Any]:
        """Return the output of the checkpoint's tokenizer or processor for a text, a picture, or both."""
        library = self._library
        if not self.sees_pictures:
            return self.tokenizer(text, return_tensors="pt")
        if not self.reads_text:
            return self._load(library.AutoImageProcessor.from_pretrained)(images=picture, return_tensors="pt")
        processor = self._load(library.AutoProcessor.from_pretrained)
        if not getattr(processor, "chat_template", None):
            return processor(text=text, images=picture, return_tensors="pt")
        content = [{"type": "image", "image": picture}, {"type": "text", "text": text}]
        return processor.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=True, return_dict=True, return_tensors="pt",
            add_generation_prompt=True,
        )  # fmt: skip

    def _generate(self, inputs: Inputs) -> Tensor:
        """Return the ids that the model generates, or those of its text if it cannot generate."""
        model: Any = self.model
        if not model.can_generate():
            return inputs.arguments["input_ids"]
        with torch.no_grad():
            return model.generate(**inputs.arguments, max_new_tokens=MAX_NEW_TOKENS, do_sample=False)

    def tokens(self, ids: Tensor) -> list[str]:
        """Return a readable token for each id."""
        tokenizer = subwords.as_tokenizer(self.tokenizer)
        convert = tokenizer.tokens if isinstance(tokenizer, subwords.Subwords) else tokenizer.convert_ids_to_tokens
        return list(convert(ids.tolist()))

    def attention(self, inputs: Inputs) -> tuple[dict[str, look.AttentionMaps], str]:
        """Return the maps of one forward pass in named groups of one shape, and a one-line summary of the capture."""
        longest = max(len(inputs.tokens), len(inputs.decoder_tokens))
        with torch.no_grad(), look.capture(self.model, dtype=torch.uint8, lazy=longest > MIN_LAZY_TOKENS) as captured:
            self.model(**inputs.arguments)
        groups = look.groups(captured, invocations="last")
        return {name: _with_tokens(name, maps, inputs) for name, maps in groups.items()}, captured.summary


def _check_config(config: Mapping[str, Any], name: str) -> None:
    """Raise an error for a config that needs other code: kernels from the Hub, or quantized weights."""
    for key, value in config.items():
        chooses_code = re.fullmatch(r"_?(attn|experts)_implementation(_internal)?", key)
        if chooses_code and re.search(r"[/@:]", str(value)):
            raise ValueError(f"config.json of {name}: {key} is {value!r}, code from elsewhere, which is not run here")
        if key == "quantization_config" and value is not None:
            raise ValueError(f"config.json of {name}: quantised weights need code from elsewhere; give plain ones")
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping):
                _check_config(inner, name)


def _with_tokens(name: str, maps: look.AttentionMaps, inputs: Inputs) -> look.AttentionMaps:
    """Return maps with the tokens of each side whose number fits."""
    in_decoder = bool(DECODER_NAME.search(name)) or not inputs.tokens
    rows = inputs.decoder_tokens if in_decoder and inputs.decoder_tokens else inputs.tokens
    cols = inputs.tokens if CROSS_ATTENTION_NAME.search(name) else rows
    words: Mapping[str, Any] = {
        side: tokens if len(tokens) == count else None
        for side, tokens, count in zip(("rows", "cols"), (rows, cols), maps.shape[2:])
    }
    return look.AttentionMaps(maps.layers, **words, mask=maps.mask, sites=maps.sites, provenance=maps.provenance)
