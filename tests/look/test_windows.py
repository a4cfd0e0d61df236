"""Windowed attention over images is joined into one map that reproduces the model's output."""

import pytest
import torch
from combinations import one_at_a_time
from torch import nn
from torch.nn import functional

from tfviz import look

HEADS, DIM = 3, 12


class Block(nn.Module):
    """A picture [batch, row, col, dim] looks at itself in windows, as Swin's and SAM's do."""

    def __init__(self, window_size, shift_size=0):
        super().__init__()
        self.window_size, self.shift_size = window_size, shift_size
        self.norm, self.num_heads = nn.LayerNorm(DIM), HEADS
        self.qkv, self.project = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x):
        batch, rows, cols, _ = x.shape
        down, across = size = self.window_size if isinstance(self.window_size, tuple) else (self.window_size,) * 2
        shift = (self.shift_size,) * 2 if isinstance(self.shift_size, int) else self.shift_size
        moved = functional.pad(
            self.norm(x).roll([-s for s in shift], (1, 2)), (0, 0, 0, -cols % across, 0, -rows % down)
        )
        high, wide = (count // side for count, side in zip(moved.shape[1:3], size))
        windows = moved.view(batch, high, down, wide, across, DIM).transpose(2, 3).reshape(-1, down * across, DIM)
        query, key, value = self.qkv(windows).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        made = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        back = made.view(batch, high, wide, down, across, DIM).transpose(2, 3).reshape(moved.shape)
        return self.project(back[:, :rows, :cols].roll(shift, (1, 2)))

    def whole(self, x, pattern):
        """The same from one pattern over all places."""
        value = self.qkv(self.norm(x))[..., 2 * DIM :].flatten(1, 2).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        return self.project((pattern @ value).transpose(1, 2).flatten(2)).view_as(x)


CASES = {
    "square": (4, 0, (8, 8)), "shifted": (4, 2, (8, 8)), "oblong": ((2, 3), (1, 2), (4, 9)),
    "one window down": ((4, 2), (0, 1), (4, 6)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "batch", "how"), one_at_a_time(CASES, [2, 1], [{}, {"lazy": True}, {"dtype": torch.uint8}])
)
def test_joined_map_reproduces_window_attention(case, batch, how):
    torch.manual_seed(0)
    size, shift, grid = CASES[case]
    near = 0.01 if "dtype" in how else 1e-6
    block, x = Block(size, shift).eval(), torch.randn(batch, *grid, DIM)
    with torch.no_grad(), look.capture(block, **how) as seen:
        expected = block(x)
    for row in range(batch):
        maps = look.AttentionMaps.from_capture(seen, batch=row)
        assert maps.shape == (1, HEADS, x[0, ..., 0].numel(), x[0, ..., 0].numel())
        assert (block.whole(x[row : row + 1], maps.weights) - expected[row]).abs().max() < near
        assert maps.layers[0].dtype == how.get("dtype", torch.float32)
        assert torch.equal(maps.mask[0, 0], maps[0, 0] > 0)
        (grouped,) = look.groups(seen, batch=row).values()
        assert torch.equal(grouped.weights, maps.weights)


def test_padded_windows_keep_only_weights_inside_the_image():
    """Padding gets weight too, as in SAM: rows over the picture's own places add up to less than 1."""
    block, x = Block(4), torch.randn(1, 6, 7, DIM)
    with torch.no_grad(), look.capture(block) as seen:
        block(x)
    maps = look.AttentionMaps.from_capture(seen)
    assert maps.shape[2:] == (42, 42)
    sums = maps.weights[0].sum(-1).view(HEADS, 6, 7)
    assert torch.allclose(sums[:, :4, :4], torch.ones(1), atol=1e-6)
    assert (sums[:, 5] < 0.99).any()


class Flat(Block):
    """As Hugging Face's: places in one line, and beside them how many rows and columns they are."""

    def forward(self, x, sides):
        return super().forward(x.unflatten(1, sides)).flatten(1, 2)


def test_flat_image_uses_the_sides_passed_to_its_module():
    block, x, sides = Flat(4, 2), torch.randn(1, 8 * 32, DIM), (8, 32)  # as many places as 16 x 16
    with torch.no_grad(), look.capture(block) as seen:
        output = block(x, sides)
    whole = block.whole(x.unflatten(1, sides), look.AttentionMaps.from_capture(seen).weights)
    assert (whole.flatten(1, 2) - output).abs().max() < 1e-6


def test_swin_windows_are_joined():
    transformers = pytest.importorskip("transformers")
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, window_size=4, depths=[2, 2], num_heads=[3, 6], embed_dim=DIM
    )
    model = transformers.SwinModel(config).eval()
    sites = ["*.pattern", "*layernorm_before", "*layernorm_after", "encoder.layers.0.blocks.*", "embeddings*"]
    with torch.no_grad(), look.capture(model, sites) as seen:
        model(pixel_values=torch.randn(2, 3, 32, 32))
    first, second = look.groups(seen, batch=1).values()
    assert (first.shape, second.shape) == ((2, 3, 256, 256), (2, 6, 64, 64))
    for number, block in enumerate(model.encoder.layers[0].blocks):
        path = f"encoder.layers.0.blocks.{number}"
        before = seen["embeddings" if number == 0 else "encoder.layers.0.blocks.0"][1]
        value = block.attention.v_proj(seen[f"{path}.layernorm_before"][1]).view(256, 3, 4).transpose(0, 1)
        made = block.attention.o_proj((first[number] @ value).transpose(0, 1).reshape(256, DIM))
        assert (block.layernorm_after(before + made) - seen[f"{path}.layernorm_after"][1]).abs().max() < 1e-6
