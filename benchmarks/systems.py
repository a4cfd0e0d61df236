"""Every system trained, on made text and on real text; one table.

A task trains its models, with checkpoints in `runs/systems` (or `TFVIZ_RUNS`): stopped, it goes on where it was. Its
rows go into `results/systems.json` and the table is made of all that is there, so that tasks can be run one by one.
Seconds are those of training, on the machine that the table names; a row that falls short stays, with its number.

    TFVIZ_DATA=... python benchmarks/systems.py [--quick] [TASK ...]
"""

from collections import Counter

import induction
import languages
import memories
import reviews
import translations
from common import RESULTS, parser
from rows import Row, Task, keep, stored

TASKS: dict[str, Task] = languages.TASKS | memories.TASKS | translations.TASKS | reviews.TASKS | induction.TASKS


def table(rows: list[Row]) -> str:
    """Markdown, in the order of the tasks."""
    head = ("system", "trained on", "measure", "aim", "measured", "steps", "parameters", "seconds", "seed", "date", "")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row in rows:
        counts = (f"{row.steps:,}", f"{row.parameters:,}", f"{row.seconds:,.0f}") if row.steps else ("", "", "")
        cells = (row.system, row.task, row.measure, row.aim, row.value, *counts, str(row.seed), row.date, row.note)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    given = options.parse_args()
    unknown = [name for name in given.tasks if name not in TASKS]
    if unknown:
        options.error(f"no task is called {', '.join(unknown)}; there are: {', '.join(TASKS)}")
    quick = []
    for name in given.tasks or TASKS:
        rows = list(TASKS[name](given.quick))
        print(table(rows), flush=True)
        quick += rows
        if not given.quick:
            keep(rows)
    if given.quick:
        print(table(quick))
        return
    rows = stored()
    machines = "\n".join(f"* {count} rows: {name}" for name, count in Counter(row.machine for row in rows).items())
    parts = ["# The systems, trained", table(rows), machines, "* command: `python benchmarks/systems.py TASK ...`"]
    (RESULTS / "systems.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
