"""The plain reference of `recipe.py`: a character model and its loop in nanoGPT's CPU configuration.

Written here from the public description of that configuration: 4 layers, 4 heads, width 128, context 64, batches of 12;
learned positions, pre-norm, tied embeddings, no biases, no dropout, N(0, 0.02) with residual projections divided by
sqrt(2 layers); AdamW, 1e-3 falling to 1e-4 by a cosine after 100 steps of warm-up, betas (0.9, 0.99), decay 0.1 on
matrices, gradient norm clipped at 1.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import learn, text

LAYERS, HEADS, DIM, CONTEXT, BATCH = 4, 4, 128, 64, 12
STEPS, WARMUP, TOP, LOW = 2000, 100, 1e-3, 1e-4


class ReferenceBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(DIM, bias=False), nn.LayerNorm(DIM, bias=False)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.up, self.down = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(4 * DIM, DIM, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.norm_1(x)).view(batch, length, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, DIM))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Reference(nn.Module):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, DIM), nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.ModuleList(ReferenceBlock() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                into_stream = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * LAYERS) if into_stream else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def rate(step: int, steps: int) -> float:
    if step < WARMUP:
        return TOP * (step + 1) / (WARMUP + 1)
    through = (step - WARMUP) / max(1, steps - WARMUP)
    return LOW + (TOP - LOW) * (1 + math.cos(math.pi * through)) / 2


def trained(ids: Tensor, vocab_size: int, steps: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = Reference(vocab_size)
    matrices, vectors = ([p for p in model.parameters() if (p.dim() > 1) == wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=TOP, betas=(0.9, 0.99), fused=True)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        starts = torch.randint(len(ids) - CONTEXT, (BATCH,)).tolist()
        inputs = torch.stack([ids[start : start + CONTEXT] for start in starts])
        targets = torch.stack([ids[start + 1 : start + 1 + CONTEXT] for start in starts])
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


def measure(train: Callable[..., nn.Module], steps: int, seed: int, held: Tensor) -> tuple[float, float, float]:
    """Seconds, milliseconds a step, validation loss in nats."""
    started = time.perf_counter()
    model = train(steps=steps, seed=seed)
    seconds = time.perf_counter() - started
    return seconds, 1000 * seconds / steps, learn.evaluate.loss(model, text.in_order(held, CONTEXT, 64))
