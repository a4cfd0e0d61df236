"""Text from a model on a CPU, token by token: tfviz against Hugging Face.

Greedy, one sequence in float32, an 8-token prompt, keys and values kept. The Hugging Face GPT-2 has the weights of the
tfviz model, and the texts are asserted to be the same. (a) a character model: 4 layers, 4 heads, width 128, vocabulary
65, context 256; 128 tokens. (b) GPT-2 small's shape; 48 tokens. tfviz's faster product of one row and a large matrix
(`generate.onednn`) is also taken out, and measured alone: one row times the 50,257 x 768 output matrix, as the
weights read in a second. All rows of a part take turns in one process; medians, and medians of the ratios in each
round.

    python benchmarks/generate.py [--quick] [--rounds N]
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from statistics import median
from unittest import mock

import torch
from common import Run, parser, race, ratio, report
from torch import Tensor, nn
from torch.nn import functional

from tfviz import generate, models
from tfviz.generate.onednn import OneDNNLinear, faster_linear

SEED, PROMPT = 0, 8
CHARACTERS = {"vocab_size": 65, "layers": 4, "heads": 4, "dim": 128, "context": 256}
SMALL = {"vocab_size": 50257, "layers": 12, "heads": 12, "dim": 768, "context": 1024}


def gpt(vocab_size: int, **shape: int) -> nn.Module:
    torch.manual_seed(SEED)
    return models.GPT(vocab_size, **shape).eval()


@torch.no_grad()
def hugging(model: nn.Module, vocab_size: int, layers: int, heads: int, dim: int, context: int) -> nn.Module:
    """The same model as Hugging Face has it."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"n_layer": layers, "n_head": heads, "n_embd": dim, "n_positions": context, "vocab_size": vocab_size}
    special = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
    config = GPT2Config(activation_function="gelu", attn_implementation="sdpa", **shape, **special)
    twin = GPT2LMHeadModel(config).eval()
    inner = twin.transformer
    inner.wte.weight.copy_(model.tokens.weight)
    inner.wpe.weight.copy_(model.positions.vectors.weight)
    inner.ln_f.load_state_dict(model.norm.state_dict())
    for theirs, ours in zip(inner.h, model.blocks, strict=True):
        theirs.ln_1.load_state_dict(ours.attention_norm.state_dict())
        theirs.ln_2.load_state_dict(ours.feed_forward_norm.state_dict())
        up, _, down = ours.feed_forward
        pairs = {theirs.attn.c_attn: ours.attention.in_proj, theirs.attn.c_proj: ours.attention.out_proj}
        for there, here in {**pairs, theirs.mlp.c_fc: up, theirs.mlp.c_proj: down}.items():
            there.weight.copy_(here.weight.T)  # theirs are stored the other way round
            there.bias.copy_(here.bias)
    return twin


def runs(shape: dict[str, int], count: int) -> dict[str, Run]:
    """Row -> how to write the text; each gives the new ids."""
    model = gpt(**shape)
    prompt = torch.randint(shape["vocab_size"], (PROMPT,), generator=torch.Generator().manual_seed(SEED))

    def tfviz() -> list[int]:
        return list(generate.ids(model, prompt, count, generate.GREEDY))

    def without_onednn() -> list[int]:
        with mock.patch("tfviz.generate.sample.faster_linear", return_value=nullcontext()):
            return tfviz()

    rows: dict[str, Run] = {"tfviz": tfviz}
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if isinstance(faster_linear(weights, prompt.device), OneDNNLinear):
        rows["tfviz without oneDNN"] = without_onednn
    try:
        rows["Hugging Face"] = peer(hugging(model, **shape), prompt, count)
    except ModuleNotFoundError:
        print("transformers is not installed: no row for Hugging Face")
    return rows


def peer(twin: nn.Module, prompt: Tensor, count: int) -> Callable[[], list[int]]:
    def run() -> list[int]:
        options = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "use_cache": True}
        ids = twin.generate(prompt[None], attention_mask=torch.ones_like(prompt)[None], **options)
        return ids[0, len(prompt) :].tolist()

    return run


def texts(shape: dict[str, int], count: int, rounds: int) -> Iterator[list[str]]:
    racing = runs(shape, count)
    written = [run() for run in racing.values()]
    assert len(written[0]) == count
    assert all(text == written[0] for text in written), "the texts differ"
    times = race(racing, rounds)
    what = f"{shape['layers']} layers, width {shape['dim']}, vocabulary {shape['vocab_size']:,}; {count} tokens"
    base = "Hugging Face" if "Hugging Face" in times else "tfviz"
    for name, seconds in times.items():
        yield [f"{what}: {name}", f"{count / median(seconds):.1f} tokens/s", f"{1 / ratio(times, name, base):.2f}"]


@torch.inference_mode()
def bandwidth(rows: int, columns: int, rounds: int) -> Iterator[list[str]]:
    weight, x = torch.randn(rows, columns), torch.randn(1, columns)

    def fast() -> Tensor:
        with OneDNNLinear():
            return functional.linear(x, weight)

    if not isinstance(faster_linear(1 << 40, x.device), OneDNNLinear):
        return
    times = race({"linear": lambda: functional.linear(x, weight), "linear on oneDNN": fast}, rounds)
    for name, seconds in times.items():
        speed = weight.nbytes / median(seconds) / 1e9
        faster = 1 / ratio(times, name, "linear")
        yield [f"one row times {rows:,} x {columns}: {name}", f"{speed:.1f} GB/s", f"{faster:.2f}"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    small = {**SMALL, "layers": 2, "vocab_size": 20000} if given.quick else SMALL
    rows = [*texts(CHARACTERS, 16 if given.quick else 128, given.rounds)]
    rows += texts(small, 4 if given.quick else 48, given.rounds)
    rows += bandwidth(small["vocab_size"], 768, 10 * given.rounds)
    notes = ["Times as fast: as Hugging Face in the same part; in the last two rows, as the plain product."]
    header = ["", "speed", "times as fast"]
    report("generate", "Generation on a CPU", header, rows, seeds=[SEED], quick=given.quick, notes=notes)


if __name__ == "__main__":
    main()
