"""Runs the page's JavaScript modules in Node from Python, for tests that need no browser.

PYTEST_DONT_REWRITE: test modules name this as their plugin, and import from it.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import tfviz.view

JS = Path(tfviz.view.__file__).parent / "js"
SERVER = Path(__file__).with_name("node.js")


class Node:
    """A process of Node. What its scripts declare at the top stays, as in a page."""

    def __init__(self):
        if (node := shutil.which("node")) is None:
            pytest.skip("there is no Node")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([node, str(SERVER)], text=True, encoding="utf-8", **pipes)

    def load(self, *modules):
        """Make what these modules export, paths below `js` without `.js`, global names."""
        for module in modules:
            self._ask(load=(JS / f"{module}.js").as_uri())

    def run(self, script):
        """Run a script."""
        self._ask(run=script)

    def evaluate(self, function, argument=None):
        """Return what a function, awaited, gives for an argument."""
        return self._ask(call=function, argument=argument)

    def _ask(self, **question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("result")

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)


@pytest.fixture(scope="session")
def node():
    process = Node()
    yield process
    process.close()


@pytest.fixture
def fresh_node():
    process = Node()
    yield process
    process.close()
