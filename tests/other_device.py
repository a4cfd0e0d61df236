"""A simulated second device: its tensors hold CPU data, report another device and reject CPU tensors.

PyTorch keeps a place for devices that it does not know ("privateuseone"), and lets Python compute on it. Each operation
here is the CPU's own, after a check that all its tensors are on one device, as on a GPU: scalar tensors and indices may
be on the CPU.
"""

from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only

try:
    from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend
except ImportError:
    pytest.skip("this PyTorch takes no device that is written in Python", allow_module_level=True)

aten = torch.ops.aten
NAME = "other"
COPIES = {aten._to_copy.default, aten.copy_.default, aten._copy_from.default}  # that may have two devices
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default, aten.index_put.default}


class Mixed(RuntimeError):
    """Tensors of two devices met in an operation."""


class OtherTensor(torch.Tensor):
    """A tensor on the other device.

    Attributes:
        held: its numbers, on the CPU.
    """

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=NAME, requires_grad=False,
        )  # fmt: skip

    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return f"OtherTensor({self.held})"

    def tolist(self):
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return compute(func, args, kwargs or {})


def compute(func, args, kwargs):
    """Compute on the CPU what is asked for on the other device."""
    if func is aten._fused_sdp_choice.default:
        return 0  # softmax and products
    flat, _ = tree_flatten((args, kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    is_here = [isinstance(tensor, OtherTensor) for tensor in tensors]
    strangers = [tensor for tensor in tensors if not isinstance(tensor, OtherTensor) and tensor.dim()]
    if strangers and any(is_here) and func not in COPIES and not (func in INDEXING and is_here[0]):
        raise Mixed(f"{func}: {[list(tensor.shape) for tensor in strangers]} of the CPU among tensors elsewhere")
    target = kwargs.get("device")
    kwargs = {name: torch.device("cpu") if isinstance(value, torch.device) else value for name, value in kwargs.items()}
    stays = target is not None and torch.device(target).type == "cpu"
    plain_args, plain_kwargs = tree_map_only(OtherTensor, lambda tensor: tensor.held, (args, kwargs))
    found = func(*plain_args, **plain_kwargs)
    if stays:
        return found
    known = {id(tensor.held): tensor for tensor in flat if isinstance(tensor, OtherTensor)}
    if func is aten.copy_.default and not isinstance(args[0], OtherTensor):
        return args[0]
    return tree_map(lambda value: _moved(value, known), found)


def _moved(value, known):
    if not isinstance(value, torch.Tensor) or isinstance(value, OtherTensor):
        return value
    return known[id(value)] if id(value) in known else OtherTensor(value)


class MakesTensors(TorchFunctionMode):
    """Moves what is made of Python's numbers to the other device, which PyTorch does not do for devices in Python."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if func in (torch.tensor, torch.as_tensor) and device is not None and torch.device(device).type == NAME:
            return func(*args, **{**kwargs, "device": "cpu"}).to(NAME)
        if func is torch.Tensor.new_tensor and isinstance(args[0], OtherTensor):
            return args[0].held.new_tensor(*args[1:], **kwargs).to(NAME)
        return func(*args, **kwargs)


class Backend(_DummyBackendModule):
    """What PyTorch asks of a device before it trains there."""

    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]


@contextmanager
def installed():
    """Let PyTorch know the device; it does so for the rest of the process."""
    _setup_privateuseone_for_python_backend(NAME, Backend())
    library = torch.library.Library("_", "IMPL")
    library.fallback(lambda func, *args, **kwargs: compute(func, args, kwargs), "PrivateUse1")
    inference_mode = torch.inference_mode
    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else nullcontext()  # which knows no such tensors
    try:
        with MakesTensors(), torch.autograd.set_multithreading_enabled(False):  # it has no thread for the device
            yield
    finally:
        torch.inference_mode = inference_mode
