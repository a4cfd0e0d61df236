"""Capture of `nn.MultiheadAttention` and of the fast path of PyTorch's encoder layers, which a capture disables."""

from __future__ import annotations

from inspect import signature, unwrap
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from tfviz.look.attention_call import is_unmasked
from tfviz.look.capture_state import CaptureState
from tfviz.look.module_paths import is_within
from tfviz.look.torch_modes import CaptureMode, paused

# `multi_head_attention_forward` first passes itself to the active function mode. This is its body without that step, so
# that the mode observes the calls inside it. Some libraries replace PyTorch's functions with wrappers.
_ORIGINAL = unwrap(functional.multi_head_attention_forward)
_BODY = FunctionType(
    _ORIGINAL.__code__, {**vars(functional), "has_torch_function": lambda _: False}, argdefs=_ORIGINAL.__defaults__
)
_SIGNATURE = signature(_ORIGINAL)


class MultiHeadForward:
    """A version of `multi_head_attention_forward` whose attention can be traced and whose results are unchanged."""

    def __init__(self, state: CaptureState, mode: TorchFunctionMode) -> None:
        self.state, self.mode = state, mode

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute `multi_head_attention_forward` with the calls inside it observed."""
        bound = _SIGNATURE.bind(*args, **kwargs)
        self._read_masks_as_fast_path(bound.arguments)
        stacks = [self.state.stack, *(tracer.stack for tracer in self.state.running_outer())]
        for stack in stacks:
            stack.state.num_heads = bound.arguments["num_heads"]
        try:
            with self.mode:
                return _BODY(*bound.args, **bound.kwargs)
        finally:
            for stack in stacks:
                stack.state.num_heads = None

    def _read_masks_as_fast_path(self, arguments: dict[str, Any]) -> None:
        """Treat every nonzero cell of a float mask as forbidden, if an encoder layer would take its fast path."""
        masks = {name: arguments.get(name) for name in ("attn_mask", "key_padding_mask")}
        floats = {name: mask for name, mask in masks.items() if isinstance(mask, Tensor) and mask.is_floating_point()}
        if not any(bool((is_unmasked(mask) & (mask != 0)).any()) for mask in floats.values()):
            return  # these masks only forbid and do not shift scores
        stack = self.state.stack
        around = [stack.modules[frame.path] for frame in stack.state.frames]
        if any(isinstance(module, nn.TransformerEncoderLayer) and takes_fast_path(module) for module in around):
            for name, mask in floats.items():
                arguments[name] = torch.zeros_like(mask).masked_fill_(mask != 0, -torch.inf)
            self.state.diagnostics.fast_path[stack.path] = None

    def output_without_capture(
        self, module: nn.Module, path: str, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        """Return the output that PyTorch's encoder would return without a capture.

        Its fast path leaves zeros at the padding and NaN in fully masked rows.
        """
        padding = kwargs.get("src_key_padding_mask", args[2] if len(args) > 2 else None)
        is_padded = isinstance(module, nn.TransformerEncoder) and padding is not None and not torch.is_grad_enabled()
        is_fast_layer = isinstance(module, nn.TransformerEncoderLayer) and self._took_fast_path(path)
        if not (is_padded or is_fast_layer):
            return output
        with paused(), torch._C.DisableTorchFunction():
            fast_output = module.forward(*args, **kwargs)
        is_edited = self.state.recorder.is_edited_below(path)
        if not is_padded:
            return output if is_edited else fast_output
        if fast_output.is_nested or fast_output.shape != output.shape:
            return output
        return torch.where((fast_output == 0).all(-1, keepdim=True), fast_output, output) if is_edited else fast_output

    def _took_fast_path(self, path: str) -> bool:
        return any(is_within(module, path) for module in self.state.diagnostics.fast_path)


def takes_fast_path(layer: nn.TransformerEncoderLayer) -> bool:
    """Return whether a layer would take its fast path without a capture: the conditions of its `forward`."""
    attention = layer.self_attn
    return bool(
        torch.backends.mha.get_fastpath_enabled()
        and not layer.training
        and attention.batch_first
        and attention.in_proj_bias is not None
        and attention._qkv_same_embed_dim
        and layer.activation_relu_or_gelu
        and layer.norm1.eps == layer.norm2.eps
        and attention.num_heads % 2 == 0
        and not torch.is_autocast_enabled()
        and not any(map(_has_hooks, layer.modules()))
        and not (torch.is_grad_enabled() and any(parameter.requires_grad for parameter in layer.parameters()))
        and not any(not isinstance(mode, CaptureMode) for mode in _get_current_function_mode_stack())
    )


def _has_hooks(module: nn.Module) -> bool:
    """Return whether a module has hooks that are not a capture's."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return not all(map(CaptureMode.owns, hooks))
