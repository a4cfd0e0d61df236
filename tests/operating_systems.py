"""What the tests ask for and Windows has not."""

import os
import sys

import pytest

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork, no such signals and limits")
links = pytest.mark.skipif(sys.platform == "win32", reason="on Windows only an administrator may make links")
make_pipe = getattr(os, "mkfifo", os.mkdir)  # what is no file: on Windows a folder
