"""Cases of paths that cannot be written to."""

SETUP = """
import os
from pathlib import Path
from tfviz import files
def write(path):
    with files.atomic(path) as draft:
        draft.write_text("all of it")
    return sorted(os.listdir("."))
def folder(path):
    with files.atomic(path) as draft:
        draft.mkdir()
"""
CASES = [
    ("write('')", "path is ''"),
    ("write('..')", r"path is '\.\.'"),
    ("write('/')", "path is '/'"),
    ("write('a\\0b')", "give the name of a file"),
    ("os.mkdir('d'); write('d')", "d cannot be written: it is a folder"),
    ("write('f'); folder('f')", "f cannot be written: it is a file"),
    ("write('f'); write('f/x')", "f/x cannot be written: "),
    ("write('/proc/none/x')", "/proc/none/x cannot be written: No such file"),
    ("write('x' * 300)", "xxx cannot be written: File name too long"),
    ("os.symlink('x', 'x'); write('x')", "x cannot be written: "),
    ("os.mkfifo('x'); write('x')", "x cannot be written: it is not a file"),
    ("write('deep/er/x')", r"= \['deep'\]"),
    ("write('x'), write('x')", r"= \(\['x'\], \['x'\]\)"),
    ("folder('x'), folder('x'), os.listdir()", r"= \(None, None, \['x'\]\)"),
    ("os.environ['HOME'] = os.getcwd(); it = write('~/x')", r"= \['x'\]"),
    ("write('~nobody-has-this-name')", r"= \['~nobody-has-this-name'\]"),
]
