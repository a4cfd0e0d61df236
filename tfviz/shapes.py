"""Shapes in signatures: `Float[Tensor, "batch head query key"]`.

They are documentation, which tests check with jaxtyping and beartype. If jaxtyping has not been imported, as everywhere
but in tests, they mean plain `Tensor`, and the names of the axes appear in messages of `tfviz.validation`.
"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:  # whoever checks types against tfviz need not have jaxtyping
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
