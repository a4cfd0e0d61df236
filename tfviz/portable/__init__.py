"""Export models and functions as programs: plain data and bytes that run in a web page without Python."""

from tfviz.portable.export import export
from tfviz.portable.program import Program
from tfviz.portable.supported_operators import SUPPORTED_OPERATORS
from tfviz.validation import validate_public

__all__ = ["SUPPORTED_OPERATORS", "Program", "export"]

validate_public(globals(), ["export"])
