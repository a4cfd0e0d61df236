"""A lesson's code cells in a plain process, small, with some of its parameters replaced."""

import linecache
from unittest import mock

from tfviz import learn
from tfviz.lessons import notebooks


class TrainsError(Exception):
    """A training begins that was not asked for."""


def lesson(name, **given):
    """Run the cells one by one, until one fails or begins a training.

    Returns:
        whether a training begins, where nothing fails.
    """
    (path,) = notebooks.find([name])
    values, names = notebooks.values(path, "smoke", given), {}
    with mock.patch.object(learn, "fit", side_effect=TrainsError):
        for index, cell in enumerate(notebooks.read(path).cells):
            if cell.cell_type == "code":
                where = f"<{path.stem}, cell {index}>"
                linecache.cache[where] = (
                    len(cell.source),
                    None,
                    cell.source.splitlines(True),
                    where,
                )  # `view.flow` reads it
                try:
                    exec(compile(cell.source, where, "exec"), names)
                except TrainsError:
                    return "it trains"
            if "parameters" in cell.metadata.get("tags", []):
                names.update(values)
    return "nothing trains"
