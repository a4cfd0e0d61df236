"""The setup of `accelerate` for the devices and processes of a training run."""

from __future__ import annotations

from typing import Any

import torch

from tfviz.extras import extra


def create_accelerator(device: str | torch.device | None) -> Any:
    """Return an `accelerate.Accelerator` on a device; None: the GPU if there is one, or each process's own device.

    Raises:
        ValueError: the device has an index and there are several processes, or the weights are sharded by version 1 of
            FSDP.
    """
    with extra("lessons"):
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState, DistributedType, PartialState
        from accelerate.utils import DistributedDataParallelKwargs

    device = None if device is None else torch.device(device)
    # otherwise accelerate does not join processes on CPUs
    cpu = not torch.accelerator.is_available() if device is None else device.type == "cpu"
    # accelerate fixes its device at first use; a notebook may train twice, on different ones
    if PartialState(cpu=cpu).num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
        if device is not None:
            PartialState(cpu=cpu)._shared_state["device"] = device
    elif device is not None and device.index is not None:
        raise ValueError(
            f"device is {str(device)!r}, but each process of a distributed run has its own device; leave device out"
        )
    # BERT's second head is unused in training without sentence pairs
    ddp = DistributedDataParallelKwargs(find_unused_parameters=True)
    # `PreparedModel` enables autocast: accelerate would wrap the model's forward permanently
    accelerator = Accelerator(cpu=cpu, mixed_precision="no", kwargs_handlers=[ddp])
    if accelerator.distributed_type == DistributedType.FSDP:
        if not accelerator.is_fsdp2:
            raise ValueError("weights can only be sharded by FSDP version 2; launch with --fsdp_version 2")
        # the weights are in memory already, and this option rejects parameters of the outermost module
        accelerator.state.fsdp_plugin.cpu_ram_efficient_loading = False
    return accelerator
