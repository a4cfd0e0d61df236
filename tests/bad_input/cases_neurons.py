"""Cases of invalid arguments of `view.neurons`."""

SETUP = """
import torch
from tfviz import view
from tfviz.look import AttentionMaps, capture
from tfviz.models import GPT, TransformerXL
model = GPT(7, context=8, layers=2, heads=2, dim=8).eval()
ids = torch.tensor([[1, 2, 3]])
def maps(lazy=True, model=model):
    with capture(model, lazy=lazy) as seen: model(ids)
    return AttentionMaps.from_capture(seen, "abc")
def neurons(*given, **more): return view.neurons(maps(), *given, **more)
"""
CASES = [
    ("view.neurons(maps(lazy=False))", "layer 0 of maps has weights without their queries and keys"),
    ("view.neurons(torch.ones(3, 3))", "maps"),
    ("neurons(2)", "layer is 2; the maps have 2 layers, from 0 to 1"),
    ("neurons(0, -3)", "head is -3; the maps have 2 heads"),
    ("neurons(0, 0, 3)", "query is 3; the maps have 3 queries"),
    ("neurons(max_bytes=100)", "queries and keys take .* bytes in a page, max_bytes is 100: give maps of fewer layers"),
    ("neurons(0.5)", "layer"),
    ("neurons(-1, -1, -1).document['state']", r"= \{'layer': 1, 'head': 1, 'query': 2\}"),
]
