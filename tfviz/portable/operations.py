"""What the page's engine can do, by aten's names: the table of `view/js/engine/operations.js`."""

OPERATIONS: frozenset[str] = frozenset()
# arguments that say where or how a result lies in memory, or take part in no result
LEFT_OUT = {"memory_format", "layout", "device", "pin_memory", "generator", "out", "non_blocking", "copy"}
