"""Translations by a beam of 4, batches of 32: tfviz and the same model in transformers, whose `generate` searches, too.

The weights are random, and of transformers' models M2M100 has the parts of ours: pre-norm blocks, sinusoids, embeddings
that are scaled and shared. Its forward pass gives the same logits, and both searches must find the same texts, of a set
number of tokens. Both take turns in one process; medians, and medians of the ratios in each round.

    python benchmarks/beams.py [--quick] [--rounds N]
"""

from collections.abc import Iterator
from statistics import median

import torch
from common import Run, parser, race, ratio, report
from torch import Tensor, nn

from tfviz import generate, models

SEED, WIDTH, BATCH = 0, 4, 32
BOS, EOS = 2, 3
LESSON = {"layers": 4, "heads": 4, "dim": 128, "inner": 256, "vocab_size": 6000}
BASE = {"layers": 6, "heads": 8, "dim": 512, "inner": 2048, "vocab_size": 32000}  # the paper's base model


def transformer(vocab_size: int, **shape: int) -> nn.Module:
    torch.manual_seed(SEED)
    model = models.Transformer(vocab_size, context=128, **shape).eval()
    with torch.no_grad():
        model.target.weight[EOS] = 0.0  # a logit of 0, which is never among the likeliest: texts do not end
    return model


@torch.no_grad()
def hugging(model: nn.Module, vocab_size: int, layers: int, heads: int, dim: int, inner: int) -> nn.Module:
    """The same model as transformers has it."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    both = {"layers": layers, "attention_heads": heads, "ffn_dim": inner, "layerdrop": 0.0}
    shape = {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in both.items()}
    special = {"pad_token_id": 0, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}
    parts = {"vocab_size": vocab_size, "d_model": dim, "max_position_embeddings": 128, "scale_embedding": True}
    twin = M2M100ForConditionalGeneration(M2M100Config(**shape, **special, **parts)).eval()
    twin.model.shared.weight.copy_(model.source.weight)
    encodings = model.positions(torch.zeros(1, 128, dim))[0]
    for theirs, ours in (
        (twin.model.encoder, (model.encoder, model.encoder_norm)),
        (twin.model.decoder, (model.decoder, model.decoder_norm)),
    ):
        theirs.embed_positions.weights[1:129] = encodings  # theirs count from 1, padding being 0
        theirs.layer_norm.load_state_dict(ours[1].state_dict())
        for there, here in zip(theirs.layers, ours[0], strict=True):
            _block(there, here)
    return twin


def _block(there: nn.Module, here: nn.Module) -> None:
    pairs = [(there.self_attn, there.self_attn_layer_norm, here.attention, here.attention_norm)]
    if hasattr(here, "cross"):
        pairs.append((there.encoder_attn, there.encoder_attn_layer_norm, here.cross, here.cross_norm))
    for theirs, their_norm, ours, norm in pairs:
        their_norm.load_state_dict(norm.state_dict())
        for name, weight, bias in zip("qkv", ours.in_proj.weight.chunk(3), ours.in_proj.bias.chunk(3), strict=True):
            part = getattr(theirs, f"{name}_proj")
            part.weight.copy_(weight)
            part.bias.copy_(bias)
        theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    there.final_layer_norm.load_state_dict(here.feed_forward_norm.state_dict())
    there.fc1.load_state_dict(here.feed_forward[0].state_dict())
    there.fc2.load_state_dict(here.feed_forward[2].state_dict())


def sources(vocab_size: int) -> Tensor:
    """Texts of 8 to 16 tokens, padded."""
    draw = torch.Generator().manual_seed(SEED)
    ids = torch.randint(4, vocab_size, (BATCH, 16), generator=draw)
    return ids * (torch.arange(16) < torch.randint(8, 17, (BATCH, 1), generator=draw))


def runs(shape: dict[str, int], length: int) -> dict[str, Run]:
    """Row -> how to search; each gives the best text of each source, batch position."""
    model, source = transformer(**shape), sources(shape["vocab_size"])
    twin = hugging(model, **shape)
    target = source[:, :7].clamp(min=4)
    with torch.no_grad():
        theirs = twin(input_ids=source, attention_mask=source != 0, decoder_input_ids=target).logits
        torch.testing.assert_close(model(source, target), theirs, atol=1e-4, rtol=1e-4)

    def tfviz() -> Tensor:
        how = {"bos": BOS, "eos": EOS, "num_beams": WIDTH, "length_penalty": 0.0, "max_new_tokens": length}
        return generate.beam.search(model, source, **how).sequences[:, 0, 1:]

    def transformers() -> Tensor:
        how = {"num_beams": WIDTH, "do_sample": False, "length_penalty": 0.0, "bad_words_ids": [[0], [BOS]]}
        size = {"max_new_tokens": length, "min_new_tokens": length}
        return twin.generate(source, attention_mask=source != 0, **how, **size)[:, 1:]

    return {"tfviz": tfviz, "transformers": transformers}


def rows(shape: dict[str, int], length: int, rounds: int) -> Iterator[list[str]]:
    racing = runs(shape, length)
    found = [run() for run in racing.values()]
    assert found[0].shape == (BATCH, length)
    assert torch.equal(*found), f"{(found[0] != found[1]).any(1).sum()} of {BATCH} texts differ"
    times = race(racing, rounds)
    for name, seconds in times.items():
        size = f"{shape['layers']} + {shape['layers']} blocks, width {shape['dim']}, vocabulary {shape['vocab_size']:,}"
        what = f"{size}: {name}"
        speed = f"{BATCH * length / median(seconds):,.0f} tokens/s"
        yield [what, speed, f"{1 / ratio(times, name, 'transformers'):.2f}"]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    sizes = [LESSON] if given.quick else [LESSON, BASE]
    found = [row for shape in sizes for row in rows(shape, 4 if given.quick else 24, given.rounds)]
    header = ["", "speed", "times as fast"]
    note = f"A beam of {WIDTH} over {BATCH} sources of 8 to 16 tokens, 24 tokens each; of four texts the best counts."
    report("beams", "Beam search on a CPU", header, found, seeds=[SEED], quick=given.quick, notes=[note])


if __name__ == "__main__":
    main()
