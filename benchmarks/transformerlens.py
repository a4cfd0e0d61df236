"""Patching, attribution and the logit lens on the same weights as TransformerLens, number by number.

Small models of Hugging Face get weights that are computed from whole numbers alone, so that they are the same anywhere.
TransformerLens wraps them; both packages answer the same questions, and each number must be equal to 1e-4. What
TransformerLens said is kept in `results/transformerlens.json`, with which a test compares tfviz where it is not there.

    python benchmarks/transformerlens.py [--quick]
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from common import RESULTS, installed, parser, report
from torch import Tensor, nn

from tfviz import look, study

TOKENIZER, TOLERANCE = 50, 1e-4
MANY = 500  # numbers of an answer that is not stored
STORED = RESULTS / "transformerlens.json"
SMALL = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 20}
GROUPED = {"num_key_value_heads": 2, "max_position_embeddings": 8, "head_dim": 6}
KINDS = {
    "GPT2": {"n_positions": 8, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_inner": 20},
    "Llama": {**SMALL, **GROUPED},
    "GPTNeoX": {**SMALL, "max_position_embeddings": 8},
    "Qwen3": {**SMALL, **GROUPED},
    "Gemma2": {**SMALL, **GROUPED, "query_pre_attn_scalar": 6, "final_logit_softcapping": None},
}
HEADS = {"GPT2": "LMHeadModel"}  # others are called ForCausalLM
BLOCKS = {"GPT2": "transformer.h", "GPTNeoX": "gpt_neox.layers"}  # others: model.layers
EAGER = ("Gemma2",)  # of which there is no fused attention, and so no site of the queries
POST_NORMED = ("Gemma2",)
ATTENTION = {"GPT2": "attn", "GPTNeoX": "attention"}  # others: self_attn
CLEAN = torch.tensor([[3, 14, 15, 9, 5], [35, 8, 9, 7, 32]])
CORRUPT = torch.tensor([[3, 14, 38, 9, 4], [35, 8, 12, 20, 32]])
RIGHT, OTHER = 11, 42
difference = study.logit_difference(RIGHT, OTHER)
Answers = dict[str, Tensor]


def uniform(count: int, seed: int) -> Tensor:
    """Numbers from -1 to 1 that are alike on every machine and in every version (a mixer of whole numbers)."""
    mixed = torch.arange(count, dtype=torch.int64) + seed * 1_000_003
    for _ in range(2):
        mixed = ((mixed >> 16) ^ mixed) * 0x45D9F3B & 0xFFFFFFFF
    return ((((mixed >> 16) ^ mixed) & 0xFFFF).double() / 0x8000 - 1).float()


def model_of(kind: str, attention: str = "sdpa") -> nn.Module:
    """A small model with weights large enough for every part to matter."""
    import transformers

    special = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=TOKENIZER, attn_implementation=attention, **special, **KINDS[kind]
    )
    model = getattr(transformers, f"{kind}{HEADS.get(kind, 'ForCausalLM')}")(config).eval()
    with torch.no_grad():
        for seed, (name, parameter) in enumerate(model.named_parameters()):
            is_gain = name.endswith("weight") and ("norm" in name or "ln_" in name) and kind != "Gemma2"
            parameter.copy_(0.5 * uniform(parameter.numel(), seed).view_as(parameter) + (1 if is_gain else 0))
    return model


def by_tfviz(kind: str) -> Answers:
    """The answers of tfviz."""
    model = model_of(kind, "eager" if kind in EAGER else "sdpa")
    blocks = BLOCKS.get(kind, "model.layers")
    query = f"{blocks}.?.{ATTENTION.get(kind, 'self_attn')}.query"
    patch = partial(study.patch, model, CLEAN, CORRUPT, metric=difference, progress=False)
    answers = {
        "patch heads": patch().values,
        "patch heads at positions": patch(each="head and position").values,
        "patch the stream before blocks": patch(sites=f"{blocks}.?.input").values,
        "patch heads by gradient": patch(source="gradient").values,
        "zero heads": study.patch(model, CLEAN, metric=difference, source="zero", progress=False).values,
        "lens": torch.cat(
            [study.logit_lens(model, CLEAN[text : text + 1], token=RIGHT).values[None] for text in range(len(CLEAN))]
        ).transpose(0, 1),
        "attribute to heads": study.logit_attribution(model, CLEAN, target=difference, each="head").values,
        "attribute to attentions": _of_kind(study.logit_attribution(model, CLEAN, target=difference), "att"),
    }
    with torch.no_grad(), look.capture(model, ["*.pattern", "*.output_heads"]) as seen:
        answers["logits"] = model(CLEAN).logits
    for part in ("pattern", "output_heads"):
        answers[part] = torch.stack([tensor for site, tensor in seen.items() if site.endswith(part)])
    if kind not in EAGER:
        answers["patch queries"] = patch(sites=query).values
        answers["patch queries at positions"] = patch(sites=query, each="head and position").values
        answers["path to a query"] = study.patch_path(
            model, CLEAN, CORRUPT, metric=difference, source="clean", receivers={query.replace("?", "2"): 1},
            frozen=["*.output_heads", "*.mlp"], progress=False,
        ).values[:2]  # fmt: skip
    return {name: values.detach().float() for name, values in answers.items()}


def _of_kind(table: study.Table, part: str) -> Tensor:
    """The values of those parts in whose name another is."""
    return torch.tensor([table[label] for label in table.axes["part"] if part in label.rpartition(".")[2]])


def by_transformer_lens(kind: str) -> Answers:
    """The answers of TransformerLens to the questions that it answers of this kind of model."""
    from transformer_lens import patching
    from transformer_lens.model_bridge.sources import build_bridge_from_module

    def wrapped() -> Any:
        own = model_of(kind, "eager")
        return build_bridge_from_module(own, type(own).__name__, hf_config=own.config)

    model, folded = wrapped(), wrapped()
    folded.enable_compatibility_mode(
        center_writing_weights=False,
        center_unembed=False,
        fold_value_biases=False,
        refactor_factored_attn_matrices=False,
    )  # heads are then as the model has them
    logits, clean = model.run_with_cache(CLEAN)
    before, corrupt = model.run_with_cache(CORRUPT)

    def patched(sweep: Callable[..., Tensor]) -> Tensor:
        return sweep(model, CORRUPT, clean, difference) - difference(before)

    questions: dict[str, Callable[[], Tensor]] = {
        "logits": lambda: logits,
        "pattern": lambda: torch.stack([clean["pattern", layer] for layer in range(3)]),
        "output_heads": lambda: torch.stack([clean["z", layer].transpose(1, 2) for layer in range(3)]),
        "patch heads": lambda: patched(patching.get_act_patch_attn_head_out_all_pos),
        "patch heads at positions": lambda: patched(patching.get_act_patch_attn_head_out_by_pos).transpose(1, 2),
        "patch the stream before blocks": lambda: patched(patching.get_act_patch_resid_pre),
        "patch queries": lambda: patched(patching.get_act_patch_attn_head_q_all_pos),
        "patch queries at positions": lambda: patched(patching.get_act_patch_attn_head_q_by_pos).transpose(1, 2),
        "patch heads by gradient": lambda: _by_gradient(model),
        "zero heads": lambda: _zeroed(model),
        "lens": lambda: clean.logit_lens(positions=None).values.softmax(-1)[..., RIGHT],
        "attribute to heads": lambda: _attributed(folded, "head")[:12].view(3, 4),
        "attribute to attentions": lambda: _attributed(folded, "component", "attn_out"),
        "path to a query": lambda: _paths(model, clean, corrupt) - difference(before),
    }
    answers = {}
    for name, question in questions.items():
        try:
            answers[name] = question().detach().float()
        except (ValueError, NotImplementedError) as error:
            print(f"{kind}, {name}: {str(error).splitlines()[0]}")
    return answers


def _zeroed(model: Any) -> Tensor:
    """The change by each head without its output, layer x head."""
    changes, plain = torch.zeros(3, 4), difference(model(CLEAN))
    for layer in range(3):
        for head in range(4):

            def zero(z: Tensor, hook: object, head: int = head) -> Tensor:
                z = z.clone()
                z[:, :, head] = 0
                return z

            logits = model.run_with_hooks(CLEAN, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", zero)])
            changes[layer, head] = difference(logits) - plain
    return changes


def _by_gradient(model: Any) -> Tensor:
    """Attribution patching of each head, layer x head."""
    from transformer_lens.tools.analysis.attribution_patching import attribution_patch

    scores = attribution_patch(model, CLEAN, CORRUPT, difference).node_scores
    by_head = torch.zeros(3, 4)
    for node, score in scores.items():
        if node.head is not None:
            by_head[node.layer, node.head] += score
    return by_head


def _attributed(model: Any, unit: Any, part: str = "") -> Tensor:
    """Direct logit attribution at the last position, mean over the texts."""
    from transformer_lens.tools.analysis.direct_logit_attribution import direct_logit_attribution

    found = direct_logit_attribution(model, CLEAN, RIGHT, OTHER, unit=unit)
    return torch.stack([row for row, label in zip(found.attribution, found.labels) if part in label]).mean(-1)


def _paths(model: Any, clean: Any, corrupt: Any) -> Tensor:
    """The metric with each head's path to the query of head 1 in the last layer patched."""
    from transformer_lens.patching import get_act_patch_direct_path

    runs = [
        get_act_patch_direct_path(model, CORRUPT, clean, corrupt, difference, layer, head, "q", verbose=False)[2, 1]
        for layer in range(2)
        for head in range(4)
    ]
    return torch.stack(runs).view(2, 4)


def main() -> None:
    quick = parser(__doc__).parse_args().quick
    warnings.simplefilter("ignore")
    rows, stored, notes = [], {}, ["A dash: TransformerLens does not answer it of this model."]
    for kind in ("GPT2",) if quick else KINDS:
        own, theirs = by_tfviz(kind), by_transformer_lens(kind)
        if kind in POST_NORMED:
            off = theirs.pop("attribute to heads").sum(1) - theirs["attribute to attentions"]
            notes.append(
                f"{kind} has a norm after its attention. TransformerLens leaves it out of the shares of heads, which "
                f"add up to {off.abs().max():.2g} more or less than those of its attentions; ours add up to them."
            )
        for name in theirs.keys() & own.keys():
            torch.testing.assert_close(own[name], theirs[name], atol=TOLERANCE, rtol=0, msg=f"{kind}, {name}")
        for name in own:
            values = theirs.get(name)
            compared = (
                ["–"] * 3
                if values is None
                else [
                    f"{values.numel():,}",
                    f"{values.abs().max():.3g}",
                    f"{(own[name] - values).abs().max():.0e}",
                ]
            )
            rows.append([f"{kind}: {name}", *compared])
        stored[kind] = {
            name: [float(f"{value:.6g}") for value in values.flatten().tolist()]
            for name, values in theirs.items()
            if name in own and values.numel() < MANY
        }
    report(
        "transformerlens",
        f"The numbers of TransformerLens {installed('transformer_lens')}, on the same weights",
        ["", "numbers", "largest", "largest difference"],
        rows,
        seeds=["none"],
        quick=quick,
        notes=notes,
    )
    if not quick:
        STORED.write_text(json.dumps(stored) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
