"""Which package may import which, and what `import tfviz` loads."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tfviz

PACKAGE = Path(tfviz.__file__).parent
SHARED = {
    f"tfviz.{name}"
    for name in (
        "checks",
        "coercion",
        "apply_edit",
        "compiled",
        "eval_mode",
        "extras",
        "files",
        "hugging_face",
        "logits",
        "schema",
        "shapes",
        "indexed_batches",
        "suggestions",
        "validation",
    )
}
ALLOWED = {  # package -> what it may import beside itself and the shared files
    "text": set(),
    "layers": set(),
    "models": {"layers"},
    "learn": set(),
    "generate": {"text"},
    "look": set(),
    "study": {"look"},
    "portable": set(),
    "view": {
        "look.ablate",
        "look.capture",  # these functions are public, and have the names of their modules
        "look.edits",
        "portable",
        "study.table",
        "study.logit_lens",
        "study.block_replay",
        "study.inputs",
        "study.sites",
        "text.subwords",
        "text.token_labels",
    }
    | {"look.map_arguments", "look.quantization", "look.key_ranges"},  # what maps are made of
    "lessons": {"text", "layers", "models", "learn", "generate", "look", "study", "view"},
}
PUBLIC = {("view", "tfviz.look")}  # packages that may be imported whole, but none of their modules
HEAVY = [
    "matplotlib",
    "IPython",
    "ipywidgets",
    "jupyter",
    "jupyterlab",
    "notebook",
    "transformers",
    "accelerate",
    "anywidget",
]
ABSENT = [
    "jupyter",
    "jupyterlab",
    "jupyter_client",
    "anywidget",
    "ipywidgets",
    "bertviz",
    "papermill",
    "pooch",
    "babel",
]


def imported_modules(path, package):
    """Dotted names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            names = [f"{module}.{alias.name}" for alias in node.names]
            yield from ([name if is_module(name) else module for name in names] if module else names)


def is_module(name):
    path = PACKAGE.parent.joinpath(*name.split("."))
    return name.startswith("tfviz") and (path.is_dir() or path.with_suffix(".py").is_file())


def import_edges():
    for path in sorted(PACKAGE.rglob("*.py")):
        package = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else ""
        for name in imported_modules(path, ".".join(path.relative_to(PACKAGE.parent).parent.parts)):
            if name.partition(".")[0] == "tfviz":
                yield path.relative_to(PACKAGE).as_posix(), package, name


def is_within(name, allowed):
    return any(name == f"tfviz.{package}" or name.startswith(f"tfviz.{package}.") for package in allowed)


def test_packages_import_only_allowed_packages():
    wrong = [
        f"{path} imports {name}"
        for path, package, name in import_edges()
        if name not in SHARED
        and not (package and is_within(name, {package, *ALLOWED[package]}))
        and (package, name) not in {*PUBLIC, ("lessons", "tfviz")}
        and path not in ("__main__.py", "__init__.py")  # the latter for type checkers only
    ]
    assert wrong == []


def test_import_edges_are_found():
    found = {(package, name) for _, package, name in import_edges()}
    assert {("models", "tfviz.layers"), ("view", "tfviz.look"), ("learn", "tfviz.indexed_batches")} <= found
    assert {package for package, _ in found} >= {
        "text",
        "layers",
        "models",
        "learn",
        "generate",
        "look",
        "study",
        "view",
    }


def find_cycle(graph):
    """A walk along imports that comes back to where it has been; empty if there is none."""
    done = set()

    def walk(name, way):
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        done.add(name)
        return next(filter(None, (walk(other, [*way, name]) for other in sorted(graph.get(name, ())))), [])

    return next(filter(None, (walk(name, []) for name in sorted(graph))), [])


def test_modules_have_no_circular_imports():
    """Neither for types only, nor inside a function."""
    graph = {}
    for path, _, name in import_edges():
        module = "tfviz." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if (PACKAGE.parent / name.replace(".", "/")).with_suffix(".py").is_file() and name != module:
            graph.setdefault(module, set()).add(name)
    assert {"tfviz.lessons.runs", "tfviz.lessons.gallery"} <= graph["tfviz.lessons.runner"]
    assert find_cycle(graph) == []


def test_find_cycle_detects_cycles():
    assert find_cycle({"a": {"b"}, "b": {"c", "d"}, "d": {"b"}}) == ["b", "d", "b"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}}) == []


@pytest.mark.parametrize("package", ["look", "layers", "models"])
def test_compute_packages_need_only_torch_and_safetensors(package):
    outside = {
        name.partition(".")[0]
        for path in PACKAGE.glob(f"{package}/*.py")
        for name in imported_modules(path, f"tfviz.{package}")
    }
    assert outside - set(sys.stdlib_module_names) <= {"torch", "safetensors", "tfviz"}


def python(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def test_import_tfviz_is_light():
    python("-c", f"import tfviz, sys; assert not {{m.partition('.')[0] for m in sys.modules}} & set({HEAVY})")


def test_import_tfviz_loads_no_other_module():
    standard = "import importlib, types, warnings, sys; before = {*sys.modules}"
    python("-c", f"{standard}; import tfviz; assert {{*sys.modules}} - before == {{'tfviz'}}")


def test_subpackages_are_imported_lazily():
    code = "import tfviz, sys; assert 'torch' not in sys.modules; tfviz.layers; assert 'torch' in sys.modules"
    python("-c", f"{code}; assert set(tfviz.__all__) < set(dir(tfviz)); assert 'tfviz.view' not in sys.modules")
    with pytest.raises(AttributeError, match=r"no attribute 'modles'; it has: .*models"):
        _ = tfviz.modles


def test_subpackages_work_without_notebook_packages():
    packages = ", ".join(f"tfviz.{name}" for name in ALLOWED if name not in ("lessons", "view"))
    blocked = f"import sys; sys.modules.update(dict.fromkeys({ABSENT}))"
    python("-c", f"{blocked}; import {packages}; assert tfviz.text.corpora.load('pydoc')")
