"""What the page's engine can do, by aten's names: the table of `view/js/engine/operations.js`."""

OPERATIONS: frozenset[str] = frozenset()
