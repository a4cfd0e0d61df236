"""The documents of views: what Python tells a page, as plain values that JSON holds, and the page's JavaScript reads.

Each kind of view has a type here, a `TypedDict`: Python builds it and mypy checks it; `typescript` writes the same for
JavaScript, as `js/documents.d.ts`. These modules do not postpone annotations, so that types can be read back from them.
"""
