"""Joining modules: each after those it imports, code and texts as they were, each mistake told when a page is made."""

import json
import shutil
import subprocess

import pytest

from tfviz.view.page.bundle import GIVEN, JS, factory, module_of, script

NODE = shutil.which("node")


@pytest.fixture
def room(tmp_path):
    """`room({"a/b": text, ...})` writes modules and gives their folder."""

    def written(modules):
        for name, text in modules.items():
            path = tmp_path / f"{name}.js"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return written


def own(joined):
    """A script without the constants that Python gives."""
    lines = joined.split("\n")
    assert [line.split()[1] for line in lines[: len(GIVEN)]] == list(GIVEN)
    return "\n".join(lines[len(GIVEN) :])


def run(text):
    """What a script says on one line of JSON, in an engine of its own."""
    if NODE is None:
        pytest.skip("there is no Node")
    done = subprocess.run([NODE, "--input-type=module", "-"], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DIAMOND = {
    "top": 'import { left } from "./a/left.js";\nimport { right } from "./b/right.js";\nconst top = left + right;\n',
    "a/left": 'import { base } from "../base.js";\nexport const left = base + "l";\n',
    "b/right": 'import {\n  base,\n  other,\n} from "../base.js";\nexport const right = base + other;\n',
    "base": 'export const base = "b";\nexport const other = "o";\nexport const unused = 0;\n',
    "apart": "const apart = 1;\n",
}


def test_each_module_comes_once_after_those_it_imports(room):
    assert own(script("top", root=room(DIAMOND))) == (
        'const base = "b";const other = "o";const unused = 0;\n'
        'const left = base + "l";\nconst right = base + other;\nconst top = left + right;\n'
    )


def test_entries_are_joined_in_the_order_they_are_asked_for(room):
    folder = room(DIAMOND)
    assert own(script("apart", "a/left", root=folder)).startswith("const apart")
    assert own(script("a/left", "apart", root=folder)).endswith("const apart = 1;\n")


def test_a_script_is_made_once(room):
    folder = room(DIAMOND)
    assert script("top", root=folder) is script("top", root=folder)
    assert factory("ONE", "a/left", root=folder) is factory("ONE", "a/left", root=folder)


WRONG = {
    "a circle": ({"a": 'import { b } from "./b.js";', "b": 'import { c } from "./c.js";',
                  "c": 'import { b } from "./b.js";'}, "in a circle: b -> c -> b"),
    "itself": ({"a": 'import { a } from "./a.js";\nexport const a = 1;'}, "in a circle: a -> a"),
    "no file": ({"a": 'import { b } from "./d/b.js";'}, r"a imports d/b, and there is no d/b\.js in"),
    "no entry": ({"b": ""}, r"asked for is a, and there is no a\.js in"),
    "no export": ({"a": 'import { b, d } from "./c.js";', "c": "export const b = 1;\nconst d = 2;"},
                  "a imports d from c, which exports b"),
    "exports nothing": ({"a": 'import { b } from "./c.js";', "c": ""}, "which exports nothing"),
    "one name twice": ({"a": 'import { b } from "./c.js";\nasync function twice() {}',
                        "c": "export const b = 1;\nclass twice {}"}, "twice stands at the top of two modules: c and a"),
    "a name of Python's": ({"a": "const CSS = 1;"}, "CSS stands at the top of two modules: Python and a"),
    "a star": ({"a": 'import * as b from "./b.js";'}, r"a\.js: .*an import reads"),
    "another name": ({"a": 'import { b as c } from "./b.js";'}, "an import reads"),
    "a default": ({"a": 'import b from "./b.js";'}, "an import reads"),
    "an effect": ({"a": 'import "./b.js";'}, "an import reads"),
    "a package": ({"a": 'import { b } from "d3";'}, "an import reads"),
    "a late import": ({"a": 'const b = 1;\nimport { c } from "./c.js";'}, "imports stand before all else"),
    "an import while it runs": ({"a": 'const b = () => import("./c.js");'}, "imports stand before all else"),
    "a list of exports": ({"a": "const b = 1;\nexport { b };"}, "stands before the declaration"),
    "two names in one": ({"a": "const b = f(1)[0].d, c = 2;"}, "after b: a declaration at the top gives one name"),
    "names taken apart": ({"a": "export const { b, c } = d;"}, "a declaration at the top gives one name"),
    "a string without end": ({"a": 'const b = 1;\nconst c = "x;\n'}, r"a\.js: line 2: '\"x;"),
    "a template without end": ({"a": "const b = 1;\n\nconst c = `x${1}"}, r"a\.js: line 3: a template does not end"),
    "a template's code without end": ({"a": "const c = `x${ {a: 1} `"}, "does not end"),
    "a bracket without end": ({"a": "const b = [1, (2];"}, r"line 1: '\]' closes nothing"),
    "a bracket missing": ({"a": "function b() {\n"}, "'}' is missing"),
    "an unclear slash": ({"a": "if (b) {}\n/c/.test(d);"}, "line 2: a slash after '}'"),
}  # fmt: skip


@pytest.mark.parametrize(("modules", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_told_when_the_page_is_made(room, modules, message):
    with pytest.raises(ValueError, match=message):
        script("a", root=room(modules))


NO_COMMENTS = r"""
// one
const a = "// no"; // two
const b = 'it\'s /* no */'; /* three
   four */ const c = `
   // no ${ a + `}${ "`" } // no` /* no */ }
      no`;
const d = /[/"]\/\/'`/g;
const e = 8 /* five */ / 4 / 2; // six's "
const f = [/\//, 1].length / 2;
function g(x) {
  if (x) /"/.test(x); // seven
  return /'/.test(x)
}
const h = g("'")
  ? { return: 6 }.return / 3
  : 0
let i = 4; i++ / 2; // eight
const j = ["a", "b",
  , // hole
];
const k = () => /x/y.sticky // nine
;[i] = [i + 1]
console.log(JSON.stringify([a, b, c, d.source, d.flags, e, f, g('"'), h, i, j.length, k()]));
"""
SAID = ["// no", "it's /* no */", "\n   // no // no}` // no\n      no", r"[/\"]\/\/'`".replace("\\\"", '"'), "g", 1, 1,
        False, 2, 6, 3, True]  # fmt: skip


def test_comments_go_and_what_only_looks_like_one_stays(room):
    joined = own(script("a", root=room({"a": NO_COMMENTS})))
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "hole"):
        assert word not in joined
    assert joined.count("no") == 6
    assert run(joined) == SAID
    assert run(NO_COMMENTS) == SAID  # as it was before


SPACED = "const a = {\n    b: `\n    c\n\n`,\n\n    d: [\n 1,\n ],\n};\nf()\ng()\n"


def test_space_in_templates_stays_and_that_of_code_goes(room):
    joined = own(
        script("a", root=room({"a": "const a = {\n    b: `\n    c\n\n`,\n\n    d: [\n 1,\n ],\n};\nf()\ng()\n"}))
    )
    assert joined == "const a = {b: `\n    c\n\n`,d: [1,],};f()\ng()\n"


def test_names_and_exports_are_those_at_the_top(room):
    text = (
        'import { z } from "./z.js";\n'
        "export async function a(b, { c }) {\n  const d = 1;\n  function e() {}\n}\n"
        "export class F extends z {\n  g() { class H {} }\n}\n"
        "export function* i() {}\nlet j = function k() {};\nconst l = (m, n) => [m, n]\nconst o = class P {};\n"
        "for (const q of []) {}\nvar r = { export: 1, import: z.import };\nexport default { r };\n"
    )
    text = text.replace("import: z", "imports: z")
    module = module_of(room({"x/a": text}), "x/a")
    assert module.imports == {"x/z": ("z",)}
    assert module.names == ("a", "F", "i", "j", "l", "o", "r")
    assert module.exports == ("a", "F", "i")
    assert module.code.count("export ") == 1
    assert module.code.endswith("export default { r };\n")


def test_a_factory_gives_what_its_entries_export_each_time_anew(room):
    folder = room({
        "count": 'import { step } from "./deep/step.js";\nlet now = 0;\nexport const count = () => (now += step);\n',
        "deep/step": "export const step = 3;\nexport const kept = 1;\n",
        "twice": 'import { step } from "./deep/step.js";\nexport class Twice {\n  static of = 2 * step;\n}\n',
    })  # fmt: skip
    made = factory("MAKE", "count", "twice", root=folder)
    assert made.startswith('const MAKE = () => {"use strict";\n')
    assert made.count("const step") == 1
    says = "const one = MAKE(), two = (0, eval)(`(${MAKE})`)();\none.count();\n"
    says += "console.log(JSON.stringify([Object.keys(one), one.count(), two.count(), one.Twice.of]));"
    assert run(made + says) == [["count", "Twice"], 6, 3, 6]


def test_a_factory_of_nothing_is_an_error(room):
    folder = room({"a": "export const a = 1;", "b": "const b = 1;", "c": "export default { x: 1 };"})
    for entry in "bc":
        with pytest.raises(ValueError, match=f"MAKE: each of a, {entry} must export something by name"):
            factory("MAKE", "a", entry, root=folder)


# Each module and its code as Node's own parser reads them, without places: statements, exported or not.
READS = """
const { parse } = require("internal/deps/acorn/acorn/dist/acorn");
const plain = (key, value) => (["start", "end"].includes(key) ? undefined : value);
const read = (text) => parse(text, { ecmaVersion: "latest", sourceType: "module" }).body
  .filter(({ type }) => type !== "ImportDeclaration")
  .map((node) => JSON.stringify((node.type === "ExportNamedDeclaration" && node.declaration) || node, plain));
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map((texts) => texts.map(read))));
"""


def test_our_modules_mean_what_they_meant():
    if NODE is None:
        pytest.skip("there is no Node")
    paths = sorted(path.relative_to(JS).with_suffix("").as_posix() for path in JS.rglob("*.js"))
    texts = [[(JS / f"{path}.js").read_text(encoding="utf-8"), module_of(JS, path).code] for path in paths]
    command = [NODE, "--expose-internals", "-e", READS]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, timeout=60)
    if "Cannot find module" in done.stderr:
        pytest.skip("this Node keeps its parser elsewhere")
    assert done.returncode == 0, done.stderr
    for path, (before, after) in zip(paths, json.loads(done.stdout), strict=True):
        assert len(before) > 0
        assert before == after, path
