"""The documents of views: the data that Python sends to a page, as plain values that JSON can hold.

Each kind of view has a type here, a `TypedDict`: Python builds it and mypy checks it; `typescript` writes the same for
JavaScript, as `js/documents.d.ts`. These modules do not postpone annotations, so that types can be read back from them.
"""
