"""The suite of notebooks: run, test, show."""
