"""Whether captured maps are those of the model, outside Hugging Face's transformers; see `families.py`.

A dozen each of timm, torchvision, diffusers, open_clip and x-transformers, those that are installed; random weights.
The reference are the weights that the library itself hands on: what its modules drop out (`attn_drop`), what
`nn.MultiheadAttention` returns when it is asked, what diffusers' attention gives as its scores, x-transformers' own
intermediates; where there is nothing of the kind, what each softmax returns. Fused attention is captured; the reference
is taken with it turned off. A map counts as right if it has the numbers of the reference, and as many heads.

    python benchmarks/families_outside.py [--quick] [--only PACKAGE]
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from common import parser, report
from torch import Tensor, nn
from torch.nn import functional

from tfviz.look import capture

Given = tuple[nn.Module, tuple[Any, ...]]
TIMM = [
    "vit_tiny_patch16_224",
    "deit_tiny_distilled_patch16_224",
    "cait_xxs24_224",
    "convit_tiny",
    "swin_tiny_patch4_window7_224",
    "pit_ti_224",
    "beit_base_patch16_224",
    "levit_128s",
    "xcit_nano_12_p16_224",
    "eva02_tiny_patch14_224",
    "hiera_tiny_224",
    "mvitv2_tiny",
    "pvt_v2_b0",
    "nest_tiny",
    "botnet26t_256",
    "maxvit_nano_rw_256",
    "tnt_s_patch16_224",
    "crossvit_tiny_240",
]
VISION = [
    "vit_b_16",
    "vit_b_32",
    "vit_l_32",
    "swin_t",
    "swin_s",
    "swin_b",
    "swin_v2_t",
    "swin_v2_s",
    "swin_v2_b",
    "maxvit_t",
    "swin3d_t",
    "mvit_v1_b",
]
CLIP = [
    "ViT-B-32",
    "ViT-B-16",
    "RN50",
    "ViT-S-16",
    "convnext_tiny",
    "EVA02-B-16",
    "convnext_base",
    "swin_base_patch4_window7_224",
    "ViT-M-32-alt",
    "ViT-S-32-alt",
    "ViTamin-S",
    "vit_medium_patch16_gap_256",
]


def of_timm(name: str) -> Given:
    if find_spec("torchvision"):
        import_torchvision()
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=5)
    size = model.default_cfg["input_size"]
    return model, (torch.randn(1, *size),)


def of_torchvision(name: str) -> Given:
    vision = import_torchvision()
    if "3d" in name or "mvit" in name:
        return getattr(vision.models.video, name)(num_classes=5), (torch.randn(1, 3, 16, 224, 224),)
    return getattr(vision.models, name)(num_classes=5), (torch.randn(1, 3, 224, 224),)


def import_torchvision() -> Any:
    """Its compiled operations may not fit this torch; its models do not need them."""
    original = torch.library.register_fake

    def registered(operation: Any, *given: Any, **more: Any) -> Any:
        if str(operation).startswith("torchvision::"):
            return lambda function: function
        return original(operation, *given, **more)

    torch.library.register_fake = registered
    try:
        import torchvision
        import torchvision.models
    finally:
        torch.library.register_fake = original
    return torchvision


def of_open_clip(name: str) -> Given:
    import_torchvision()
    import open_clip

    model = open_clip.create_model(name, pretrained=None)
    size = model.visual.image_size
    size = size if isinstance(size, int) else size[0]
    return model, (torch.randn(1, 3, size, size), torch.randint(1, 90, (1, 77)))


def of_diffusers(name: str) -> Given:
    import diffusers

    return {
        "UNet2DConditionModel": lambda: (
            diffusers.UNet2DConditionModel(
                sample_size=16,
                block_out_channels=(32, 64),
                layers_per_block=1,
                cross_attention_dim=24,
                attention_head_dim=4,
                down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            ),
            (torch.randn(1, 4, 16, 16), 3, torch.randn(1, 7, 24)),
        ),
        "UNet2DModel": lambda: (
            diffusers.UNet2DModel(
                sample_size=16,
                block_out_channels=(32, 64),
                layers_per_block=1,
                attention_head_dim=8,
                down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            ),
            (torch.randn(1, 3, 16, 16), 3),
        ),
        "Transformer2DModel": lambda: (
            diffusers.Transformer2DModel(
                num_attention_heads=3, attention_head_dim=8, in_channels=32, cross_attention_dim=24
            ),
            (torch.randn(1, 32, 6, 6), torch.randn(1, 7, 24)),
        ),
        "PriorTransformer": lambda: (
            diffusers.PriorTransformer(
                num_attention_heads=3, attention_head_dim=8, num_layers=2, embedding_dim=24, num_embeddings=7
            ),
            (torch.randn(1, 24), 3, torch.randn(1, 24), torch.randn(1, 7, 24)),
        ),
        "AutoencoderKL": lambda: (
            diffusers.AutoencoderKL(
                block_out_channels=(32, 64),
                down_block_types=("DownEncoderBlock2D",) * 2,
                up_block_types=("UpDecoderBlock2D",) * 2,
            ),
            (torch.randn(1, 3, 16, 16),),
        ),
        "T5FilmDecoder": lambda: (
            diffusers.T5FilmDecoder(
                input_dims=12, targets_length=9, d_model=24, num_layers=2, num_heads=3, d_kv=8, d_ff=32
            ),
            ([(torch.randn(1, 7, 24), torch.ones(1, 7))], torch.randn(1, 9, 12), torch.tensor([0.3])),
        ),
        "TransformerTemporalModel": lambda: (
            diffusers.models.TransformerTemporalModel(num_attention_heads=3, attention_head_dim=8, in_channels=32),
            (torch.randn(5, 32, 6, 6),),
        ),
        "DiTTransformer2DModel": lambda: (
            diffusers.DiTTransformer2DModel(
                num_attention_heads=3,
                attention_head_dim=8,
                in_channels=4,
                out_channels=4,
                num_layers=2,
                sample_size=16,
                patch_size=2,
                num_embeds_ada_norm=10,
            ),
            (torch.randn(1, 4, 16, 16), torch.tensor([3]), torch.tensor([1])),
        ),
        "PixArtTransformer2DModel": lambda: (
            diffusers.PixArtTransformer2DModel(
                num_attention_heads=3,
                attention_head_dim=8,
                in_channels=4,
                out_channels=8,
                num_layers=2,
                sample_size=16,
                cross_attention_dim=24,
                caption_channels=24,
                use_additional_conditions=False,
            ),
            (torch.randn(1, 4, 16, 16), torch.randn(1, 7, 24), torch.tensor([3])),
        ),
    }[name]()


DIFFUSERS = [
    "UNet2DConditionModel",
    "UNet2DModel",
    "Transformer2DModel",
    "PriorTransformer",
    "AutoencoderKL",
    "T5FilmDecoder",
    "TransformerTemporalModel",
    "DiTTransformer2DModel",
    "PixArtTransformer2DModel",
]
X = {
    "Decoder": {},
    "flash": {"attn_flash": True},
    "one_kv_head": {"attn_one_kv_head": True},
    "kv_heads": {"attn_kv_heads": 2},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "sparse topk": {"attn_sparse_topk": 3},
    "qk norm": {"attn_qk_norm": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "rotary": {"rotary_pos_emb": True},
    "t5 bias": {"rel_pos_bias": True},
    "memory keys": {"attn_num_mem_kv": 4},
    "gate values": {"attn_gate_values": True},
    "sigmoid": {"attn_sigmoid": True},
    "cross": {"cross_attend": True},
}


def of_x_transformers(name: str) -> Given:
    import x_transformers

    layers = x_transformers.Decoder(dim=24, depth=2, heads=4, attn_dim_head=6, **X[name])
    model = x_transformers.TransformerWrapper(num_tokens=50, max_seq_len=32, attn_layers=layers)
    ids = torch.randint(0, 50, (2, 9))
    if name == "cross":
        context = torch.randn(2, 7, 24)

        class Cross(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, ids: Tensor, **given: Any) -> Any:
                return self.model(ids, context=context, **given)

        return Cross(), (ids,)
    return model, (ids,)


PACKAGES: dict[str, tuple[Callable[[str], Given], list[str]]] = {
    "timm": (of_timm, TIMM),
    "torchvision": (of_torchvision, VISION),
    "diffusers": (of_diffusers, DIFFUSERS),
    "open_clip": (of_open_clip, CLIP),
    "x_transformers": (of_x_transformers, list(X)),
}


@contextmanager
def recorded(model: nn.Module) -> Iterator[list[Tensor]]:
    """What the library's own modules hand on as attention weights, with nothing fused."""
    own: list[Tensor] = []
    soft: list[tuple[str, Tensor]] = []
    taken: set[str] = set()
    running: list[str] = []
    inner: list[Callable] = []
    handles = []
    for path, module in model.named_modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False
        if isinstance(module, nn.MultiheadAttention):
            handles.append(module.register_forward_pre_hook(_asked, with_kwargs=True))
            handles.append(module.register_forward_hook(lambda module, given, out: own.append(out[1])))
            taken.add(path)
        if isinstance(getattr(module, "attn_drop", None), nn.Module):
            handles.append(
                module.attn_drop.register_forward_pre_hook(lambda drop, given: own.append(given[0].detach()))
            )
            taken.add(path)
        handles.append(module.register_forward_pre_hook(lambda *_, path=path: running.append(path)))
        handles.append(module.register_forward_hook(lambda *_: (running.pop(), None)[1]))
    originals = {
        (torch, "softmax"): torch.softmax,
        (functional, "softmax"): functional.softmax,
        (Tensor, "softmax"): Tensor.softmax,
    }
    for (home, name), original in originals.items():

        def kept(*given: Any, original: Callable = original, **more: Any) -> Tensor:
            inner.append(original)
            made = original(*given, **more)
            inner.pop()
            if inner:  # one calls the other
                return made
            soft.append((running[-1] if running else "", made.detach()))
            return made

        setattr(home, name, kept)
    made: list[Tensor] = []
    try:
        yield made
    finally:
        for (home, name), original in originals.items():
            setattr(home, name, original)
        for handle in handles:
            handle.remove()
        inside = tuple(f"{path}." for path in taken)
        made += own or [
            one for path, one in soft if path not in taken and not path.startswith(inside) and one.dim() > 2
        ]


def _asked(module: nn.Module, given: tuple, named: dict) -> tuple[tuple, dict]:
    return given, {**named, "need_weights": True, "average_attn_weights": False}


def plainly(package: str, model: nn.Module, given: tuple) -> list[Tensor]:
    """The reference."""
    if package == "x_transformers":
        _, found = model(*given, return_intermediates=True)
        if all(one.post_softmax_attn is not None for one in found.attn_intermediates):
            return [one.post_softmax_attn for one in found.attn_intermediates]
    if package == "diffusers":
        return of_processors(model, given)
    with recorded(model) as made:
        model(*given)
    return made


def of_processors(model: nn.Module, given: tuple) -> list[Tensor]:
    from diffusers.models.attention_processor import Attention, AttnProcessor

    found = []
    if hasattr(model, "set_attn_processor"):
        model.set_attn_processor(AttnProcessor())
    for module in model.modules():
        if isinstance(module, Attention):
            module.set_processor(AttnProcessor())
            own = module.get_attention_scores

            def scores(*given: Any, own: Callable = own, heads: int = module.heads) -> Tensor:
                made = own(*given)
                found.append(made.detach().unflatten(0, (-1, heads)))
                return made

            module.get_attention_scores = scores
    model(*given)
    return found


def same(one: Tensor, other: Tensor) -> bool:
    """Whether a captured map has the numbers of the reference; windows may stand before heads there, or after them."""
    ways = [other]
    if other.dim() == 5:
        ways = [other.flatten(0, 1), other.transpose(1, 2).flatten(0, 1)]
    if other.dim() == 3:
        ways = [other.reshape(one.shape)] if other.numel() == one.numel() else []
    return any(one.shape == way.shape and torch.allclose(one, way.float(), atol=1e-4) for way in ways)


def tried(package: str, name: str) -> list[str]:
    build, _ = PACKAGES[package]
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        warnings.simplefilter("always")
        torch.manual_seed(0)
        try:
            model, given = build(name)
            model.eval()
        except Exception as error:
            return [package, name, f"not built: {type(error).__name__}: {str(error)[:80]}", "–", "–"]
        said.clear()
        try:
            with capture(model) as seen:
                model(*given)
            found = [one for site in seen for one in seen.over_time(site)]
            told = [str(one.message) for one in said if "tfviz" in one.filename or "shown" in str(one.message)]
            told += [seen.summary.partition(" gave maps")[2].strip(", ")]
        except Exception as error:
            found, told = [], [f"{type(error).__name__}: {str(error)[:60]}"]
        try:
            expected = [one for one in plainly(package, model, given) if one is not None]
        except Exception as error:
            return [package, name, f"no reference: {type(error).__name__}: {str(error)[:80]}", str(len(found)), "–"]
    left, right = list(found), 0
    for one in expected:
        fits = next((i for i, other in enumerate(left) if same(other, one)), None)
        right += fits is not None
        if fits is not None:
            left.pop(fits)
    shapes = "" if right == len(expected) else f"; seen {sorted({tuple(one.shape) for one in left})[:3]}, not "
    wrong = "" if right == len(expected) else f"{sorted({tuple(one.shape) for one in expected})[:3]}"
    return [
        package,
        name,
        f"{right} of {len(expected)}",
        str(len(found)),
        (" ".join(filter(None, told)) + shapes + wrong)[:160],
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only")
    given = options.parse_args()
    rows = []
    for package, (_, names) in PACKAGES.items():
        if given.only not in (None, package):
            continue
        if find_spec(package) is None:
            rows.append([package, "not installed", "–", "–", "–"])
            continue
        for name in names[:2] if given.quick else names:
            rows.append(tried(package, name))
            print(*rows[-1], sep=" | ", flush=True, file=sys.stderr)
    header = ["package", "model", "maps equal", "maps seen", "told, or not equal"]
    report(
        "families_outside", "Families, outside", header, rows, seeds=[0], quick=given.quick or given.only is not None
    )


if __name__ == "__main__":
    main()
