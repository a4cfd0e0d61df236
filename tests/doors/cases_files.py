"""Files that cannot be written, or are not what was written."""

SETUP = """
import json, os
from pathlib import Path
import torch
from safetensors.torch import save_file
from tfviz import files, sealed
def write(path):
    with files.atomic(path) as draft:
        draft.write_text("whole")
    return sorted(os.listdir("."))
def folder(path):
    with files.atomic(path) as draft:
        draft.mkdir()
def damaged(change):
    sealed.save("x", {"a": torch.arange(4.0)}, {"b": "c"})
    Path("x").write_bytes(change(Path("x").read_bytes()))
    return sealed.load("x")
def text(content):
    Path("x").write_bytes(content)
    return sealed.read_json("x")
def held(path):
    with files.alone(path), files.alone(path): pass
"""
CASES = [
    ("write('')", "path is ''; give the name of a file"),
    ("write('.')", r"path is '\.'; give the name of a file"),
    ("write('a\\0b')", "give the name of a file"),
    ("os.mkdir('d'); write('d')", "d is a folder; give the name of a file"),
    ("write('f'); folder('f')", "f is a file; give the name of a folder"),
    ("write('f'); write('f/x')", "f/x cannot be written: "),
    ("write('/proc/none/x')", "/proc/none/x cannot be written: No such file"),
    ("write('x' * 300)", "xxx cannot be written: File name too long"),
    ("write('deep/er/x')", r"= \['deep'\]"),
    ("write('x'), write('x')", r"= \(\['x'\], \['x'\]\)"),
    ("folder('x'), folder('x'), os.listdir()", r"= \(None, None, \['x'\]\)"),
    ("os.symlink('there', 'x'); it = write('x')", r"= \['there', 'x'\]"),
    ("os.environ['HOME'] = os.getcwd(); it = write('~/x')", r"= \['x'\]"),
    ("held('x')", "x is in use by another training"),
    ("Path('f').touch(); held('f')", "f cannot be written: File exists"),
    ("os.symlink('x', 'x'); write('x')", "x cannot be written: it is a link to itself"),
    ("write('a/' * 1500 + 'x')", "cannot be written: (it lies in too many folders|File name too long)"),
    ("write('~nobody-has-this-name')", r"= \['~nobody-has-this-name'\]"),
    (
        "sealed.save('x', {'a': torch.arange(4.0).expand(2, 4)}); it = sealed.load('x')[0]['a'].shape",
        r"= torch.Size\(\[2, 4\]\)",
    ),
    ("sealed.load('none')", "there is no file none"),
    ("os.mkfifo('p'); sealed.load('p')", "there is no file p"),
    ("damaged(lambda b: b[:-1] + bytes([b[-1] ^ 1]))", "x was altered or is damaged"),
    ("damaged(lambda b: b.replace(b'\"a\"', b'\"z\"'))", "x was altered or is damaged"),
    ("damaged(lambda b: b[: len(b) // 2])", "x is damaged, or no safetensors file"),
    ("save_file({'a': torch.ones(2)}, 'x'); sealed.load('x')", "x has no checksum"),
    ("text(b'')", "x is damaged, or no JSON"),
    ("text(b'{}')", "x was altered or is damaged"),
    ("text(b'\\xff\\xfe{\\x00}\\x00')", "x is damaged, or no JSON"),
    ("text(b'[' * 100_000)", "x is nested too deep"),
    ("text(json.dumps({'a': 1, 'sha256': 'no'}).encode())", "x was altered or is damaged"),
]
