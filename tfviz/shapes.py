"""Shapes in signatures: `Float[Tensor, "batch head query key"]`.

They document; tests check them with jaxtyping and beartype. Where jaxtyping has not been imported, which is everywhere
but in tests, they mean plain `Tensor`, and the names of the axes stand in the messages of `tfviz.validation`.
"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Int, UInt8
else:

    class _Shaped:
        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item]

    Bool = Float = Int = UInt8 = _Shaped

__all__ = ["Bool", "Float", "Int", "UInt8"]
