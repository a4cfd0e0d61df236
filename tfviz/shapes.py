"""Annotations of tensors with a dtype and named axes: `Float[Tensor, "batch head query key"]`.

They document shapes; tests check them with jaxtyping and beartype. Outside tests, where jaxtyping is not imported, they
are `Annotated[Tensor, axes]`, and `tfviz.validation` shows the axes in error messages.
"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:  # type checkers do not need jaxtyping
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as UInt8
elif "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Int, UInt8
else:

    class _Shaped:
        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item]

    Bool = Float = Int = UInt8 = _Shaped

__all__ = ["Bool", "Float", "Int", "UInt8"]
