"""tfviz: train the Transformer family on text and look inside it.

Data flows one way: `text` -> `models` (built of `layers`) -> `learn`, `generate` -> `look`, `portable` -> `view`.
The rooms load when they are first named, so that `import tfviz` costs little more than `import torch`.
"""

import os
import sys
from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"
__all__ = ["generate", "layers", "learn", "look", "models", "portable", "suite", "text", "view"]

# How PyTorch's threads wait for each other is read once, when torch loads. PASSIVE: asleep, so that they take nothing
# from whom they share the processor with. GNU's OpenMP (on Linux) is told to spin as long as it always does, which is
# faster where they are alone: there, they sleep when `learn/threads.py` sees others.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "300000"}  # together, or what the user says
if "torch" not in sys.modules and not WAITING.keys() & os.environ.keys():
    os.environ.update(WAITING)


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"tfviz.{name}")
    raise AttributeError(f"module 'tfviz' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
