"""The command line and what it reads: notebooks, records, parameters, folders, addresses."""

# ruff: noqa: E501
SETUP = r"""
import json, os, sys, tempfile
from pathlib import Path
import nbformat, yaml
from click.testing import CliRunner
from tfviz.suite import cleaning, formulas, gallery, grid, lab, notebooks, options, result, run, work
from tfviz.suite.cli import main

v4 = nbformat.v4
os.environ["TFVIZ_CACHE"] = tempfile.mkdtemp()
os.environ.pop("TFVIZ_DATA", None)
BOOKS = Path(tempfile.mkdtemp())
notebooks.folder = lambda: BOOKS
(BOOKS / "presets.yaml").write_text("cpu: {}")
KNOWN = {"steps": ("x", 3), "rate": ("x", 0.1), "few": ("x", [1]), "small": ("x", False), "any": ("x", None), "word": ("x", "a")}
LAUGHS = "[&a [1,1,1,1,1,1,1,1,1], " + ", ".join(f"&{n} [*{m},*{m},*{m},*{m},*{m},*{m},*{m},*{m},*{m}]" for m, n in zip("abcdefgh", "bcdefghi")) + "]"

def tfviz(*arguments, **variables):
    ended = CliRunner(env=variables).invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return f"{ended.exit_code} {ended.output}"

def raw(name, text):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name

def book(name, parameters="steps = 3", tags=(), language="python", **output):
    cells = [v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}), v4.new_code_cell("1", metadata={"tags": list(tags)})]
    cells[1].outputs = [v4.new_output("display_data", data=output["data"])] if output else []
    kernel = {"kernelspec": {"name": "k", "display_name": "k", "language": language}}
    return raw(name, nbformat.writes(v4.new_notebook(cells=cells, metadata=kernel)))

def preset(content, *arguments):
    path = BOOKS / "presets.yaml"
    path.unlink()
    try:
        if content == "pipe":
            os.mkfifo(path)
        elif content == "folder":
            path.mkdir()
        elif content:
            raw(path, content)
        return tfviz("run", *arguments)
    finally:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        path.write_text("cpu: {}")

def pipe(name):
    os.mkfifo(name)
    return name

def folder(name):
    Path(name).mkdir(parents=True)
    return name

def record(**changed):
    one = result.Result("x", "cpu", {}, "f", status="ok")
    one.write(Path("."))
    book("x.ipynb")
    for name, value in changed.items():
        raw("x.json", value)
    again = result.Result("x", "cpu", {}, "f")
    again.recall(Path("."))
    return again.status

book(BOOKS / "01_one.ipynb")
PNG = {"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="}
"""
NEST = "'[' * 100_000"
DEEP = '\'{"nbformat": 4, "nbformat_minor": 4, "metadata": \' + \'{"a":\' * 100_000 + "1" + "}" * 100_000 + \', "cells": []}\''
CASES = [
    # what is no notebook
    ("tfviz('run', raw('x.ipynb', ''))", "= .1 Error: x.ipynb is not a notebook: "),
    ("tfviz('run', raw('x.ipynb', '{}'))", "= .1 Error: x.ipynb is not a notebook: "),
    ("tfviz('run', raw('x.ipynb', '[]'))", "= .1 Error: x.ipynb is not a notebook: "),
    ("tfviz('run', raw('x.ipynb', 'null'))", "= .1 Error: x.ipynb is not a notebook: "),
    ("tfviz('run', raw('x.ipynb', '3'))", "= .1 Error: x.ipynb is not a notebook: "),
    ("tfviz('run', raw('x.ipynb', b'\\xff\\xfe'))", "= .1 Error: x.ipynb is not a notebook: .*utf-8"),
    ("tfviz('run', raw('x.ipynb', b'\\x00' * 99))", "= .1 Error: x.ipynb is not a notebook: "),
    (f"tfviz('run', raw('x.ipynb', {NEST}))", "= .1 Error: x.ipynb is not a notebook: it is nested too deep"),
    (f"tfviz('run', raw('x.ipynb', {DEEP}))", "= .1 Error: x.ipynb is not a notebook: it is nested too deep"),
    ("tfviz('run', raw('x.ipynb', '{\"nbformat\": 99, \"cells\": []}'))", "= .1 Error: x.ipynb is not a notebook: .*99"),
    ("tfviz('run', raw('x.ipynb', '{\"nbformat\": 4, \"metadata\": {}, \"cells\": [3]}'))", "= .1 Error: x.ipynb is not"),
    ("tfviz('run', raw('x.ipynb', '{\"nbformat\": 4, \"metadata\": {}, \"cells\": 3}'))", "= .1 Error: x.ipynb is not"),
    ("tfviz('run', raw('x.ipynb', '{\"nbformat\": 4, \"metadata\": [], \"cells\": []}'))", "= .1 Error: x.ipynb is not"),
    ("tfviz('run', folder('x.ipynb'))", "= .1 Error: x.ipynb is no notebook, but a folder"),
    ("tfviz('run', folder('a/b'))", "= .1 Error: a/b is no notebook, but a folder"),
    ("tfviz('run', pipe('x.ipynb'))", "= .1 Error: x.ipynb is no notebook, but something else"),
    ("tfviz('run', raw('a/x.txt', ''))", "= .1 Error: a/x.txt is no notebook, but something else"),
    ("tfviz('run', 'a/x.ipynb')", "= .1 Error: there is no file 'a/x.ipynb'"),
    ("tfviz('run', '')", "= .1 Error: there is no notebook ''; there are: 01_one"),
    ("tfviz('run', '02')", "= .1 Error: there is no notebook '02'; there are: 01_one"),
    ("tfviz('run', book('x.ipynb', language='R'))", "= .1 Error: x.ipynb is written in R; only notebooks in Python"),
    ("notebooks.load(Path(pipe('x.ipynb')))", "there is no file x.ipynb"),
    ("notebooks.load(Path(folder('x')))", "there is no file x$"),
    ("notebooks.parse('{}')", "."),
    # parameters that a notebook states
    ("tfviz('run', book('x.ipynb', 'steps = {1, 2}'))", "= .1 Error: x.ipynb, parameters, line 1: write NAME = literal"),
    ("tfviz('run', book('x.ipynb', 'steps = 1j'))", "= .1 Error: x.ipynb, parameters, line 1: write NAME = literal"),
    ("tfviz('run', book('x.ipynb', 'a = 1\\nsteps = b\"1\"'))", "= .1 Error: x.ipynb, parameters, line 2: write NAME ="),
    ("tfviz('run', book('x.ipynb', '%pylab'))", "= .1 Error: x.ipynb, parameters, line 1: write NAME = literal"),
    ("tfviz('run', book('x.ipynb', 'steps = ' + '(' * 5000))", "= .1 Error: x.ipynb, parameters, line 1: write NAME"),
    ("tfviz('run', book('x.ipynb', 'steps = ' + '-' * 50000 + '1'))", "= .1 Error: x.ipynb, parameters, line 1: write"),
    # values on the command line
    ("tfviz('run', '-p', 'steps')", "= .1 Error: -p steps: write it as KEY=VALUE"),
    ("tfviz('run', '-p', '=3')", "= .1 Error: -p =3: write it as KEY=VALUE"),
    ("tfviz('run', '-p', '')", "= .1 Error: -p : write it as KEY=VALUE"),
    ("tfviz('run', '-p', 'steps=1', '-p', 'steps=2')", "= .1 Error: -p steps is given twice; give one value"),
    ("tfviz('run', '-p', 'steps=' + '9' * 9999)", "= .1 Error: steps=9{100}…: in 01_one steps is a whole number"),
    ("tfviz('run', '-p', 'stesp=1')", "= .1 Error: no notebook here has a parameter 'stesp': 01_one has steps"),
    ("tfviz('run', book('x.ipynb', ''), '-p', 'a=1')", "= .1 Error: no notebook here has a parameter 'a': x has none"),
    ("options.read(KNOWN, 'few', LAUGHS)", "few=.*…: in x few is list, such as"),
    ("options.read(KNOWN, 'any', LAUGHS)", "any=.*…: in x any is a number, a text or a list, such as None"),
    ("options.read(KNOWN, 'few', '[' * 50_000)", "few=.*…: in x few is list, such as"),
    ("options.read(KNOWN, 'few', '[2020-01-01]')", "few=.*: in x few is list, such as"),
    ("options.read(KNOWN, 'any', '!!set {a}')", "any=!!set {a}: in x any is"),
    ("options.read(KNOWN, 'any', '!!python/object/apply:os.getcwd []')", "in x any is"),
    ("options.read(KNOWN, 'small', 'maybe')", "small=maybe: in x small is true or false"),
    ("options.read(KNOWN, 'rate', 'fast')", "rate=fast: in x rate is a number, such as 0.1"),
    ("options.read(KNOWN, 'steps', '1.5')", "steps=1.5: in x steps is a whole number, such as 3"),
    ("options.read(KNOWN, 'word', '[*a')", "= '.\\*a'"),
    # grids
    ("tfviz('run', '--grid', 'steps=1', '--grid', 'steps=2')", "= .1 Error: --grid steps is given twice; give all its"),
    ("tfviz('run', '--grid', 'steps=1', '-p', 'steps=2')", "= .1 Error: steps: given a value, and to be varied too"),
    ("tfviz('run', '--grid', 'steps=1,1')", "= .1 Error: asked for twice: 01_one .steps=1."),
    ("tfviz('run', '--grid', 'steps=')", "= .1 Error: --grid steps=: write it as KEY=V1,V2"),
    ("tfviz('run', '--grid', 'steps=*a')", "= .1 Error: --grid steps=.a: write it as KEY=V1,V2"),
    ("tfviz('run', '--grid', 'steps=' + '[' * 9999)", "= .1 Error: --grid steps=.*…: write it as KEY=V1,V2"),
    ("tfviz('run', '--grid', 'steps=' + ','.join(map(str, range(10_001))))", "= .1 Error: --grid asks for 10,001 comb"),
    ("grid.combinations(dict.fromkeys('abc', range(1000)), 'abc')", "--grid asks for 1,000,000,000 combinations of a, b, c"),
    ("grid.combinations(dict.fromkeys('abc', range(1000)), 'd')", r"= \[{}\]$"),
    ("len(grid.folder({'word': '語' * 300}).encode()) < 120", "= True"),
    ("grid._inert('=1+1')", "= \"'=1.1\""),
    # presets
    ("preset('')", "= .1 Error: there is no file .*presets.yaml, which says what each preset is"),
    ("preset('pipe')", "= .1 Error: there is no file .*presets.yaml"),
    ("preset('folder')", "= .1 Error: there is no file .*presets.yaml"),
    ("preset('cpu: {}')[:5]", "= 'False'"),
    ("preset('cpu: [')", "= .1 Error: .*presets.yaml: it is no plain YAML: "),
    ("preset('5')", "= .1 Error: .*presets.yaml: presets is 5; it must be a dictionary"),
    ("preset('[]')", "= .1 Error: .*presets.yaml: presets is a list; it must be a dictionary"),
    ("preset('cpu: 5')", "= .1 Error: .*presets.yaml: presets.cpu is 5; it must be a dictionary"),
    ("preset('cpu:')", "= .1 Error: .*presets.yaml: presets.cpu is None; it must be a dictionary"),
    ("preset('5: {}')", "= .1 Error: .*presets.yaml: presets has the key 5; every key must be a text"),
    ("preset('cpu: {01_one: 5}')", "= .1 Error: .*presets.yaml: presets.cpu.*01_one.* is 5; it must be a dictionary"),
    ("preset('cpu: {01_one: {5: 5}}')", "= .1 Error: .*presets.yaml: presets.cpu.*01_one.* has the key 5; every key"),
    ("preset('cpu: {01_ones: {}}')", "= .1 Error: .*presets.yaml: cpu has '01_ones', and there is no such notebook; there are: 01_one"),
    ("preset('cpu: {01_one: {zzz: 5}}')", "= .1 Error: .*presets.yaml: cpu.01_one: no notebook here has a parameter 'zzz': 01_one has steps"),
    ("preset('cpu: {01_one: {steps: fast}}')", "= .1 Error: .*presets.yaml: cpu.01_one.steps is 'fast'; in 01_one steps is a whole number, such as 3"),
    ("preset('cpu: {01_one: {steps: 1.5}}')", "= .1 Error: .*presets.yaml: cpu.01_one.steps is 1.5; in 01_one steps is a whole number"),
    ("preset('cpu: {01_one: {steps: true}}')", "= .1 Error: .*cpu.01_one.steps is True; in 01_one steps is a whole number"),
    ("preset('cpu: {01_one: {steps: null}}')", "= .1 Error: .*cpu.01_one.steps is None; in 01_one steps is a whole number"),
    ("preset('cpu: {01_one: {steps: 2020-01-01}}')", "= .1 Error: .*steps is a date; it must be a number, a text"),
    ("preset('cpu: {01_one: {steps: 2020-99-99}}')", "= .1 Error: .*presets.yaml: it is no plain YAML: month must be"),
    ("preset('cpu: {01_one: {steps: !!set {a}}}')", "= .1 Error: .*steps is a set; it must be a number, a text"),
    ("preset('cpu: {01_one: {steps: !!binary aGk=}}')", "= .1 Error: .*steps is b'hi'; it must be a number, a text"),
    ("preset('cpu: {01_one: {steps: ' + '9' * 9999 + '}}')", "= .1 Error: .*presets.yaml: it is no plain YAML: Exceeds"),
    ("preset('cpu: !!python/object/apply:os.getcwd []')", "= .1 Error: .*it is no plain YAML: could not determine a constructor"),
    ("preset('cpu: !mine {}')", "= .1 Error: .*it is no plain YAML: could not determine a constructor"),
    ("preset('cpu: {}\\ncpu: {}')", "= .1 Error: .*it is no plain YAML: 'cpu' stands twice in one dictionary"),
    ("preset('cpu: &a {}\\nb: *a')", "= .1 Error: .*it is no plain YAML: a value is written out"),
    ("preset('cpu: &a {<<: *a}')", "= .1 Error: .*it is no plain YAML: a value is written out"),
    ("preset('a: &a [*a]')", "= .1 Error: .*it is no plain YAML: a value is written out"),
    ("preset('cpu: ' + LAUGHS)", "= .1 Error: .*it is no plain YAML: a value is written out"),
    ("preset('cpu: ' + '[' * 90_000)", "= .1 Error: .*presets.yaml: it is nested too deep"),
    ("preset('cpu: ' + '{a: ' * 20_000)", "= .1 Error: .*presets.yaml: it is nested too deep"),
    ("preset('#' * 100_001)", "= .1 Error: .*presets.yaml: it has more than 100,000 bytes; presets are short"),
    ("preset(b'\\xff\\xfec')", "= .1 Error: .*presets.yaml: it is no text in UTF-8"),
    ("preset(b'cpu: \\x00')", "= .1 Error: .*presets.yaml: it is no plain YAML: "),
    ("preset('--- {}\\n--- {}')", "= .1 Error: .*presets.yaml: it is no plain YAML: expected a single document"),
    ("preset('gpu: {}')", "= .1 Error: there is no preset 'cpu'; there are: gpu"),
    # where results go
    ("tfviz('run', '--out', '')", "= .2 .*--out is empty; name a folder"),
    ("tfviz('run', '--out', raw('a', '') + '/b')", "= .1 Error: cannot write to .*/a/b: .*; choose another folder with --out"),
    ("tfviz('run', '--out', raw('a', ''))", "= .[12] .*'?/?a'? (is a file|: .*choose another)"),
    ("tfviz('run', '--out', '/dev/null/a')", "= .1 Error: cannot write to /dev/null/a: .*; choose another folder"),
    ("tfviz('run', '--out', folder('o/01_one.json')[:1])", "= .1 Error: .*01_one.json is a folder, where a file is to be"),
    ("tfviz('run', '--out', folder('o/01_one.ipynb')[:1])", "= .1 Error: .*01_one.ipynb is a folder, where a file is"),
    ("tfviz('run', book('n' * 220 + '.ipynb'))", "= .1 Error: n+.ipynb is too long a name; rename the notebook to at most"),
    ("tfviz('run', '--preset', '')", "= .1 Error: there is no preset ''; there are: cpu"),
    ("tfviz('run', '--jobs', '0')", "= .2 .*0 is not in the range"),
    # what an earlier run left
    ("record()", "= 'unchanged'"),
    ("record(text='')", "= 'waiting'"),
    ("record(text='[]')", "= 'waiting'"),
    (f"record(text={NEST})", "= 'waiting'"),
    ("record(text=Path('x.json').read_text().replace('0.0', '9.0') if Path('x.json').exists() else '{}')", "= 'waiting'"),
    ("os.mkfifo('x.json'); one = result.Result('x', 'cpu', {}, 'f'); one.recall(Path('.')); it = one.status", "= 'waiting'"),
    ("one = result.Result('x', 'cpu', {'rate': float('nan')}, 'f'); one.write(Path('.')); it = os.listdir()", "= .'x.json'"),
    ("result.Result('index', 'cpu', {}, '').file(Path('o'), '.html').name", "= 'index.ipynb.html'"),
    ("result.Result('javascript:a#?%', 'cpu', {}, '').link(Path('o'), '.html')", "= 'javascript%3Aa%23%3F%25.html'"),
    # addresses
    ("tfviz('run', '--scheduler', '')", "= .1 Error: --scheduler  is no address: .*write it as tcp://HOST:PORT"),
    ("tfviz('run', '--scheduler', 'nonsense')", "= .1 Error: --scheduler nonsense is no address: .*; write it as"),
    ("tfviz('run', '--scheduler', 'foo://a:1')", "= .1 Error: --scheduler foo://a:1 is no address: .*; write it as"),
    ("tfviz('run', '--scheduler', 'tcp://a:port')", "= .1 Error: --scheduler tcp://a:port is no address: .*; write it"),
    ("tfviz('run', '--scheduler', 'tcp://127.0.0.1:9')", "= .1 Error: no Dask scheduler answers at tcp://127.0.0.1:9: "),
    ("tfviz('run', '--scheduler', 'tls://127.0.0.1:9')", "= .1 Error: no Dask scheduler answers at tls://127.0.0.1:9: "),
    # clean
    ("tfviz('clean', book('x.ipynb', tags=['picture:../../x'], data=PNG), '--pictures', 'p')", "= .1 Error: x.ipynb: the tag 'picture:../../x' names no picture"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:/x'], data=PNG), '--pictures', 'p')", "= .1 Error: x.ipynb: the tag 'picture:/x' names no picture"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:'], data=PNG), '--pictures', 'p')", "= .1 Error: x.ipynb: the tag 'picture:' names no"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:..'], data=PNG), '--pictures', 'p')", "= .1 Error: x.ipynb: the tag"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:a\\\\b'], data=PNG), '--pictures', 'p')", "= .1 Error: x.ipynb: the tag"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:' + 'a' * 999], data=PNG), '--pictures', 'p')", "= .1 Error: x.ipynb: the"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:a'], data={'image/png': 'x'}), '--pictures', 'p')", "= .1 Error: .*damaged"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:a'], data=PNG), '--pictures', 'p'); it = sorted(os.listdir('p'))", r"= \['a-dark.png', 'a.png'\]"),
    ("tfviz('clean', book('x.ipynb', tags=['picture:a'], data={'image/png': 'aGk='}), '--pictures', 'p')", "= .1 Error: x.ipynb: no picture"),
    ("tfviz('clean', book('a/x.ipynb'), book('b/x.ipynb'), '--to', 'c')", "= .1 Error: a/x.ipynb and b/x.ipynb would both"),
    ("tfviz('clean', book('a/x.ipynb'), book('b/X.ipynb'), '--to', 'c')", "= .1 Error: a/x.ipynb and b/X.ipynb would both"),
    ("tfviz('clean', book('a.ipynb', tags=['picture:a'], data=PNG), book('b.ipynb', tags=['picture:a'], data=PNG), '--pictures', 'p')", "= .1 Error: a.ipynb and b.ipynb would both become a.png"),
    ("tfviz('clean', book('x.ipynb'), '--to', '')", "= .2 .*--to is empty; name a folder"),
    ("tfviz('clean', book('x.ipynb'), '--pictures', '')", "= .2 .*--pictures is empty; name a folder"),
    ("tfviz('clean', 'x.ipynb')", "= .1 Error: there is no file x.ipynb"),
    ("tfviz('clean', pipe('x.ipynb'))", "= .1 Error: there is no file x.ipynb"),
    ("tfviz('clean', folder('x.ipynb'))", "= .1 Error: there is no file x.ipynb"),
    ("tfviz('clean', raw('x.ipynb', ''))", "= .1 Error: x.ipynb is not a notebook: "),
    (f"tfviz('clean', raw('x.ipynb', {NEST}))", "= .1 Error: x.ipynb is not a notebook: it is nested too deep"),
    ("tfviz('clean', raw('x.ipynb', Path(book('y.ipynb')).read_text().replace('steps', '\\\\ud800')))", "= .1 Error: x.ipynb is not"),
    ("before = book('a.ipynb', tags=['x', 'y']); text = Path(before).read_text(); tfviz('clean', before, raw('b.ipynb', '')); it = Path(before).read_text() == text", "= True"),
    ("os.symlink(book('a/x.ipynb'), 'x.ipynb'); tfviz('clean', 'x.ipynb'); it = (os.path.islink('x.ipynb'), tfviz('clean', '--check', 'a/x.ipynb'))", "= .True, '0 '"),
    ("os.chmod(book('x.ipynb'), 0o640); tfviz('clean', 'x.ipynb'); it = oct(os.stat('x.ipynb').st_mode)", "= '0o100640'"),
    ("tfviz('run', '--out', 'd/' * 1990)", "= .1 Error: cannot write to .*d: .*; choose another folder with --out"),
    ("os.mkdir('o'); os.symlink('01_one.json', 'o/01_one.json'); it = tfviz('run', '--out', 'o')", "= .1 Error: .*o/01_one.json is a link to itself; remove it, or choose another --out"),
    ("os.mkdir('o'); os.symlink('b.html', 'o/01_one.html'); os.symlink('01_one.html', 'o/b.html'); it = tfviz('run', '--out', 'o')", "= .1 Error: .*o/01_one.html is a link to itself"),
    # data
    ("tfviz('data', 'list', TFVIZ_DATA='~nobody-has-this-name')", "= .1 Error: TFVIZ_DATA is ~nobody-has-this-name, which is no folder"),
    ("tfviz('doctor', TFVIZ_DATA='~nobody-has-this-name')", "= 'True .*data folder +~nobody-has-this-name is no folder"),
    ("folder('c/shakespeare/input.txt'); it = tfviz('data', 'fetch', 'shakespeare', TFVIZ_CACHE='c')", "= .1 Error: c/shakespeare/input.txt is a folder, and a file of shakespeare is to stand there"),
    ("tfviz('data', 'list', TFVIZ_DATA='nowhere')", "= .1 Error: TFVIZ_DATA is nowhere, which is no folder"),
    ("tfviz('data', 'path', TFVIZ_DATA=raw('a', ''))", "= .1 Error: TFVIZ_DATA is a, which is no folder"),
    ("tfviz('data', 'verify', TFVIZ_DATA='nowhere')", "= .1 Error: TFVIZ_DATA is nowhere, which is no folder"),
    ("tfviz('data', 'fetch', 'nothing')", "= .1 Error: no corpus and no file is called 'nothing'; there are: "),
    ("tfviz('data', 'path', '../x')", "= .1 Error: no corpus and no file is called '../x'; there are: "),
    # copies for the reader
    ("lab.COPIES = raw('a', ''); it = list(lab.hand_out(BOOKS, Path('a')))", "."),
    ("list(lab.hand_out(BOOKS, Path('c'))); raw('c/01_one.ipynb', 'mine'); it = list(lab.hand_out(BOOKS, Path('c'))), Path('c/01_one.ipynb').read_text()", r"= \(\[\], 'mine'\)"),
    ("raw('c/01_one.ipynb', 'mine'); it = list(lab.hand_out(BOOKS, Path('c'))), sorted(os.listdir('c'))", "= .*01_one.ipynb is as you left it; the newer original is c/01_one.new.ipynb.*'01_one.new.ipynb'"),
    # pages
    ("formulas.mathml('x^')", r"= '<code>\$x\^\$</code>'"),
    ("formulas.mathml('{' * 3000)", "= '<code>"),
    ("formulas.mathml('<script>')", "= '(?!.*<script)"),
    ("gallery.questions(v4.new_notebook())", r"= \[\]"),
    ("gallery._heading(v4.new_notebook(), 'x')", "= .'x', ''"),
    ("gallery.page(v4.new_notebook(cells=[v4.new_markdown_cell('\\uf8fe $x$ `$a$`')]), Path('x.html')); text = Path('x.html').read_text(); it = ('\\uf8fe <math' in text, '<code>$a$</code>' in text)", "= .True, True"),
    ("tfviz('look', '/nowhere/at/all', 'the cat')", '= .*there is no folder /nowhere/at/all'),
    ("tfviz('look', './nowhere', 'the cat')", '= .*there is no folder ./nowhere'),
    ("os.symlink('own', 'own'); it = tfviz('run', '--preset', 'cpu', '--out', 'own')", "= '1 Error"),
]  # fmt: skip
