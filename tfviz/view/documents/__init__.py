"""Types of the documents of views: the plain values, representable in JSON, that Python sends to a page.

Each kind of view has a `TypedDict`, by which mypy checks the code that builds documents. `generate` writes the same
types for TypeScript, as `js/documents.d.ts`. It reads annotations at run time, so these modules do not postpone them.
"""
