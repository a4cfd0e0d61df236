"""Models and functions that leave Python: exported, as plain data and bytes, to run in a page."""

from tfviz.portable.export import export
from tfviz.portable.operations import OPERATIONS
from tfviz.portable.program import Program
from tfviz.validation import validate_public

__all__ = ["OPERATIONS", "Program", "export"]

validate_public(globals(), ["export"])
