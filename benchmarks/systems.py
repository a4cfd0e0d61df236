"""Every system trained, on made text and on real text; one table.

A task trains its models, with checkpoints in `runs/systems` (or `TFVIZ_RUNS`): stopped, it goes on where it was. Its
rows go into `results/systems.json` and the table is made of all that is there, so that tasks, and seeds of one task,
can be run one by one. Seconds are those of training, on the machines that stand under the table; a row that falls
short stays, with its number.

    TFVIZ_DATA=... python benchmarks/systems.py [--quick] [--seeds 1 2 3] [TASK ...]
"""

from collections import Counter
from itertools import product
from statistics import median

import induction
import languages
import memories
import reviews
import translations
from common import RESULTS, parser
from rows import Row, Task, Trial, keep, stored

TASKS: dict[str, Task] = languages.TASKS | memories.TASKS | translations.TASKS | reviews.TASKS | induction.TASKS

MEDIANS = (
    "With several seeds, what was measured is each, in the order of the seeds, behind the median of three or five; "
    "seconds are medians."
)
COMMAND = "* command: `python benchmarks/systems.py --seeds N ... TASK ...`"


def table(rows: list[Row]) -> str:
    """Markdown, in the order of the tasks; a row for all seeds of a measure, as medians with each seed's value."""
    head = ("system", "trained on", "measure", "aim", "measured", "steps", "parameters", "seconds", "seeds", "date", "")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.system, row.task, row.measure), []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: row.seed)
        row, seconds = group[-1], median(row.seconds for row in group)
        counts = (f"{row.steps:,}", f"{row.parameters:,}", f"{seconds:,.0f}") if row.steps else ("", "", "")
        seeds = ", ".join(str(row.seed) for row in group)
        notes = "; ".join(dict.fromkeys(row.note for row in group if row.note))
        cells = (row.system, row.task, row.measure, row.aim, measured(group), *counts, seeds, row.date, notes)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measured(group: list[Row]) -> str:
    """Each seed's value, behind the median where there is one in the middle; longer texts one after the other."""
    values = [row.value for row in group]
    try:
        ordered = sorted(values, key=lambda value: float(value.rstrip("%")))
    except ValueError:
        return " / ".join(values)
    each = ", ".join(values)
    return f"{ordered[len(values) // 2]} ({each})" if len(values) > 1 and len(values) % 2 else each


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", nargs="+", type=int, default=[1], help="run each task with each of these")
    options.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    given = options.parse_args()
    unknown = [name for name in given.tasks if name not in TASKS]
    if unknown:
        options.error(f"no task is called {', '.join(unknown)}; there are: {', '.join(TASKS)}")
    quick = []
    for name, seed in product(given.tasks or TASKS, given.seeds):
        rows = list(TASKS[name](Trial(given.quick, seed)))
        print(table(rows), flush=True)
        quick += rows
        if not given.quick:
            keep(rows)
    if given.quick:
        print(table(quick))
        return
    rows = stored()
    machines = "\n".join(f"* {count} rows: {name}" for name, count in Counter(row.machine for row in rows).items())
    parts = ["# The systems, trained", MEDIANS, table(rows), machines, COMMAND]
    (RESULTS / "systems.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
