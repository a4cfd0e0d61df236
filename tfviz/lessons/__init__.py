"""The command line and the lessons: running, checking and publishing the notebooks."""
