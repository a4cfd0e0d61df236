"""The systems, one file each; each reads as its paper's figure."""

from tfviz.models.basic import SelfAttention
from tfviz.models.gpt import GPT

__all__ = ["GPT", "SelfAttention"]
