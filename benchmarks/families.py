"""Whether captured maps are those of the model, over models that nobody here wrote.

Hugging Face: every eighth of all model types of the installed transformers, in the order of their names, and of the
types that write text every eighth of theirs; each built small, with random weights and two texts of seven tokens, one
padded on the left. The reference is what the eager model itself returns as attentions. Columns: one pass under eager,
sdpa and flex, equal within 1e-4 on rows that are no padding; then, for those that write, six greedy steps with a
dynamic cache, a static one, and a sliding window of five, whose joined maps are compared with one eager pass over what
was written. Every type that falls out stands in the table with its reason.

Sizes that do not fit a type are left away, one kind after the other, before it counts as not built. Outside of
transformers: `families_outside.py`.

    python benchmarks/families.py [--quick] [--only NAME]
"""

import inspect
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import transformers
from common import parser, report
from torch import Tensor
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from tfviz.look import AttentionMaps, capture

EVERY = 8
PATIENCE = 60  # seconds for one type
WRITTEN = 6
IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [1, 1, 1, 7, 8, 9, 12]])
OPEN = (IDS != 1).long()
HEADER = ["type", "maps", "eager", "sdpa", "flex", "dynamic cache", "static cache", "sliding window"]
SIZES: dict[str, Any] = {
    **dict.fromkeys(["vocab_size"], 60),
    **dict.fromkeys(["hidden_size", "d_model", "n_embd", "emb_dim", "embedding_size", "projection_dim"], 24),
    **dict.fromkeys(["word_embed_proj_dim", "hidden_dim", "dim"], 24),
    **dict.fromkeys(["intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "d_ff"], 32),
    **dict.fromkeys(["num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers"], 2),
    **dict.fromkeys(["decoder_layers", "num_decoder_layers", "num_encoder_layers"], 2),
    **dict.fromkeys(["num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"], 4),
    **dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 4),
    **dict.fromkeys(["num_key_value_heads", "num_kv_heads", "multi_query_group_num"], 2),
    **dict.fromkeys(["head_dim", "v_head_dim"], 8),
    **dict.fromkeys(["qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim"], 4),
    **dict.fromkeys(["q_lora_rank", "kv_lora_rank", "moe_intermediate_size", "shared_expert_intermediate_size"], 16),
    **dict.fromkeys(["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"], 4),
    **dict.fromkeys(["num_experts_per_tok", "moe_topk", "moe_k"], 2),
    **dict.fromkeys(["n_group", "topk_group", "n_shared_experts"], 1),
    "image_size": 32,
    "patch_size": 8,
    "max_position_embeddings": 64,
    "n_positions": 64,
    "d_kv": 6,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 2,
}


def sampled() -> list[str]:
    """Every eighth of all types, and of those that write."""
    known = set(CONFIG_MAPPING_NAMES)
    every = sorted(known & (set(modeling_auto.MODEL_MAPPING_NAMES) | writers()))
    return sorted({*every[::EVERY], *sorted(known & writers())[::EVERY]})


def writers() -> set[str]:
    return set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def sizes(config: Any, more: dict[str, Any], fits: dict[str, Any]) -> dict[str, Any]:
    """What to make a configuration small with: of its own names those that hold a number, and its parts'."""
    given = {name: size for name, size in {**fits, **more}.items() if isinstance(getattr(config, name, None), int)}
    given |= {name: SIZES[name] for name in ("pad_token_id", "bos_token_id", "eos_token_id") if hasattr(config, name)}
    if hasattr(config, "is_decoder"):
        given["is_decoder"] = config.model_type in writers() and not getattr(config, "is_encoder_decoder", False)
    for part in getattr(config, "sub_configs", None) or {}:
        inner = getattr(config, part, None)
        if inner is not None:
            given[part] = {"model_type": inner.model_type, **sizes(inner, more, fits)}
    return given


FITS: dict[str, dict[str, Any]] = {}  # type -> the sizes that were found to fit it
LEFT_OUT = (
    (),
    ("head_dim", "v_head_dim"),
    ("head_dim", "v_head_dim", "qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim"),
)


def fitting(kind: str) -> None:
    """Find sizes that a type can be built and run with."""
    everything = dict(SIZES)
    for names in LEFT_OUT:
        FITS[kind] = {name: size for name, size in everything.items() if name not in names}
        try:
            model = build(kind, "eager")
            model(**inputs(model))
        except Exception:
            continue
        return
    FITS[kind] = everything


def build(kind: str, how: str, **more: Any) -> torch.nn.Module:
    config = transformers.AutoConfig.for_model(kind, **sizes(transformers.AutoConfig.for_model(kind), more, FITS[kind]))
    config._attn_implementation = how
    torch.manual_seed(0)
    of = transformers.AutoModelForCausalLM if kind in writers() else transformers.AutoModel
    return of.from_config(config, attn_implementation=how).eval()


def inputs(model: torch.nn.Module) -> dict[str, Tensor]:
    """What the model takes: two texts, pictures or sounds."""
    config, main = model.config, model.main_input_name
    takes = inspect.signature(model.forward).parameters
    random = torch.Generator().manual_seed(0)
    if main == "input_ids" or "input_ids" in takes:
        given = {"input_ids": IDS}
        if "attention_mask" in takes:
            given["attention_mask"] = OPEN
        if "decoder_input_ids" in takes:
            given["decoder_input_ids"] = IDS[:, 2:] + 1
        if "position_ids" in takes and type(model).__name__.endswith("ForCausalLM"):
            given["position_ids"] = (OPEN.cumsum(1) - 1).clamp(min=0)
        if "pixel_values" in takes and takes["pixel_values"].default is inspect.Parameter.empty:
            given["pixel_values"] = torch.randn(2, 3, 32, 32, generator=random)
        return given
    if main == "pixel_values":
        size = getattr(config, "image_size", 32)
        size = size if isinstance(size, int) else 32
        return {"pixel_values": torch.randn(2, getattr(config, "num_channels", 3), size, size, generator=random)}
    if main == "input_features":
        return {"input_features": torch.randn(2, getattr(config, "num_mel_bins", 80), 64, generator=random)}
    return {main: torch.randn(2, 4000, generator=random)}


def attentions(output: Any) -> Iterator[Tensor]:
    """All maps that a model returned, also those of its parts."""
    for name, value in output.items() if hasattr(output, "items") else ():
        if name.endswith("attentions"):
            yield from (one for one in value or () if isinstance(one, Tensor) and one.dim() == 4)
        elif hasattr(value, "items"):
            yield from attentions(value)


def compared(found: list[Tensor], expected: list[Tensor], padded: int = 3) -> str:
    """Whether each expected map is among those found, each once: "equal", or what is not."""
    left = list(found)
    for number, wanted in enumerate(expected):
        fits = next((i for i, one in enumerate(left) if close(one, wanted, padded)), None)
        if fits is None:
            shapes = Counter("x".join(map(str, one.shape)) for one in found)
            return f"map {number} of {'x'.join(map(str, wanted.shape))} is not among {dict(shapes)}"
        left.pop(fits)
    return "equal"


def close(one: Tensor, other: Tensor, padded: int) -> bool:
    """Of the second text only the rows that are no padding."""
    if one.shape != other.shape:
        return False
    first = torch.allclose(one[0], other[0].float(), atol=1e-4)
    rows = slice(padded, None) if one.shape[2] >= IDS.shape[1] == one.shape[3] else slice(None)
    return first and (len(one) < 2 or torch.allclose(one[1, :, rows], other[1, :, rows].float(), atol=1e-4))


def one_pass(kind: str, how: str, plain: Any, expected: list[Tensor]) -> str:
    """Whether the maps of one pass are those of the eager model; where its own output is another, that."""
    model = build(kind, how)
    with capture(model) as seen:
        output = model(**inputs(model))
    off = float((output[0] - plain[0])[0].abs().max()) if isinstance(output[0], Tensor) else 0.0
    if off > 1e-2:
        return f"its own output is another than the eager model's, by {off:.2g}"
    return compared([one for site in seen for one in seen.over_time(site)], expected)


def written(kind: str, cache: str) -> str:
    """A text written word by word, its maps joined, beside those of one pass over it."""
    more = {"sliding_window": 5} if cache == "sliding" else {}
    default = transformers.AutoConfig.for_model(kind)
    if cache == "sliding" and not hasattr(getattr(default, "text_config", default), "sliding_window"):
        return "–"
    model = build(kind, fused(kind), **more)
    model.generation_config.eos_token_id = None
    fixed = {"cache_implementation": "static"} if cache == "static" else {}
    with capture(model) as seen:
        ids = model.generate(input_ids=IDS, attention_mask=OPEN, max_new_tokens=WRITTEN, do_sample=False, **fixed)
    read, open_ = ids[:, :-1], torch.cat([OPEN, torch.ones(2, WRITTEN - 1, dtype=torch.long)], 1)
    eager = build(kind, "eager", **more)
    given = {"input_ids": read, "attention_mask": open_}
    if "position_ids" in inspect.signature(eager.forward).parameters:
        given["position_ids"] = (open_.cumsum(1) - 1).clamp(min=0)
    expected = list(attentions(eager(**given, output_attentions=True)))
    for site, wanted in zip(seen, expected, strict=True):
        maps = AttentionMaps.over_time(seen, sites=site, batch=1)
        if maps.shape[1:] != wanted.shape[1:]:
            return f"{site}: {maps.shape[1:]} for {tuple(wanted.shape[1:])}"
        off = float((maps.weights[0, :, 3:] - wanted[1, :, 3:]).abs().max())
        if off > 1e-4:
            return f"{site}: off by {off:.2g}"
    return "equal"


def fused(kind: str) -> str:
    """How a type's text is written: fused, if it can be."""
    try:
        build(kind, "sdpa")
    except ValueError:
        return "eager"
    return "sdpa"


def tried(kind: str) -> list[str]:
    """The row of a type."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            fitting(kind)
            model = build(kind, "eager")
            plain = model(**inputs(model), output_attentions=True)
            expected = list(attentions(plain))
        except Exception as error:
            return [kind, f"not built or run: {said(error)}", *["–"] * 6]
        if not expected:
            return [kind, "returns none", *["–"] * 6]
        row = [kind, str(len(expected))]
        for how in ("eager", "sdpa", "flex_attention"):
            row.append(attempt(lambda how=how: one_pass(kind, how, plain, expected), unsupported=how))
        for cache in ("dynamic", "static", "sliding"):
            row.append(attempt(lambda cache=cache: written(kind, cache)) if kind in writers() else "–")
    return row


def attempt(run: Callable[[], str], unsupported: str = "") -> str:
    try:
        return run()
    except Exception as error:
        if unsupported and "does not support" in str(error):
            return "–"
        return said(error)


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:110]}".replace("|", "/")


def late(*_: Any) -> None:
    raise TimeoutError(f"not done in {PATIENCE} seconds")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", help="one type, or one package")
    given = options.parse_args()
    transformers.logging.set_verbosity_error()
    signal.signal(signal.SIGALRM, late)
    kinds = [given.only] if given.only else sampled()[:: 20 if given.quick else 1]
    rows = []
    for kind in kinds:
        signal.alarm(PATIENCE)
        rows.append(tried(kind))
        signal.alarm(0)
        print(*rows[-1], sep=" | ", flush=True)
    report("families", "Families", HEADER, rows, seeds=[0], quick=given.quick or bool(given.only), notes=notes(rows))


def notes(rows: list[list[str]]) -> list[str]:
    """How many are equal, column by column, of those that could be."""
    ran = [row for row in rows if row[1].isdigit()]
    counts = []
    for column in range(2, len(HEADER)):
        could = [row[column] for row in ran if row[column] != "–"]
        counts.append(f"{HEADER[column]} {sum(cell == 'equal' for cell in could)} of {len(could)}")
    return [f"{len(rows)} types tried, {len(ran)} return maps. Equal: {', '.join(counts)}."]


if __name__ == "__main__":
    main()
