"""Models and functions that leave Python: exported, as plain data and bytes, to run in a page."""

from tfviz.doors import guard
from tfviz.portable.export import export
from tfviz.portable.operations import OPERATIONS
from tfviz.portable.program import Program

__all__ = ["OPERATIONS", "Program", "export"]

guard(globals(), ["export"])
