"""tfviz: train the Transformer family on text and look inside it.

Data flows one way: `text` -> `models` (built of `layers`) -> `learn`, `generate` -> `look` -> `study`, `portable` ->
`view`. Subpackages, and PyTorch with them, are imported at the first access, so `import tfviz` takes a millisecond.
"""

from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # type checkers and editors assume that this is True
if TYPE_CHECKING:
    from tfviz import generate, layers, learn, lessons, look, models, portable, study, text, view

__version__ = "0.1.0"
__all__ = ["generate", "layers", "learn", "lessons", "look", "models", "portable", "study", "text", "view"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"tfviz.{name}")
    raise AttributeError(f"module 'tfviz' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
