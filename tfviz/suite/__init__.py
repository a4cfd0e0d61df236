"""The suite of notebooks: running, checking and publishing them."""
