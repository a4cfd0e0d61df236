"""Interactive views as self-contained HTML or as notebook widgets, and the packing of their data."""
