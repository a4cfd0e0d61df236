"""Interactive views: packed data in a self-contained piece of HTML, or in a widget."""
