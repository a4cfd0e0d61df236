"""A pytest plugin by which nbval compares without a kernel: cells "run" to the outputs of an executed copy.

`REPLAY=folder pytest -p replay --nbval-lax NOTEBOOKS`. Collection, tags and comparison are nbval's own, so that the
lessons have to be executed once only, by papermill.
"""

import os
from pathlib import Path

import nbformat
import nbval.plugin


class RecordedKernel:
    """What nbval asks of a kernel, answered from a notebook that was executed before."""

    def __init__(self, path):
        self.cells = (cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")

    def execute_cell_input(self, source, allow_stdin):
        cell = next(self.cells)
        assert cell.source == source
        assert cell.execution_count
        messages = [(output.output_type, output) for output in cell.outputs]
        self.messages = iter([*messages, ("status", {"execution_state": "idle"})])
        return "recorded"

    def get_message(self, stream, timeout):
        kind, content = next(self.messages)
        return {"msg_type": kind, "content": content, "parent_header": {"msg_id": "recorded"}}

    def is_alive(self):
        return True

    def await_reply(self, *_, **__):
        pass

    await_idle = stop = await_reply


def setup(file):
    file.kernel = RecordedKernel(Path(os.environ["REPLAY"]) / file.path.name)


nbval.plugin.IPyNbFile.setup = setup
