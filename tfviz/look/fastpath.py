"""PyTorch's fast path through an encoder layer: one fused call, which it takes where nobody looks."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from tfviz.look.running import Running
from tfviz.look.verify import Verify


def takes_fast_path(layer: nn.TransformerEncoderLayer) -> bool:
    """Whether a layer would run on it without a capture: the conditions of its `forward`."""
    own = layer.self_attn
    return bool(
        torch.backends.mha.get_fastpath_enabled()
        and not layer.training
        and own.batch_first
        and own.in_proj_bias is not None
        and own._qkv_same_embed_dim
        and layer.activation_relu_or_gelu
        and layer.norm1.eps == layer.norm2.eps
        and own.num_heads % 2 == 0
        and not torch.is_autocast_enabled()
        and not any(map(_has_hooks, layer.modules()))
        and not (torch.is_grad_enabled() and any(one.requires_grad for one in layer.parameters()))
        and not any(map(_is_foreign, _get_current_function_mode_stack()))
    )


def _has_hooks(part: nn.Module) -> bool:
    """Whether others have hooks on a module."""
    hooks = [*part._forward_hooks.values(), *part._forward_pre_hooks.values()]
    return any(not isinstance(getattr(one, "__self__", None), Running | Verify) for one in hooks)


def _is_foreign(mode: TorchFunctionMode) -> bool:
    return not isinstance(mode, Running)
