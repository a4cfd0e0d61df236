"""The command `tfviz`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

import tfviz


def _explained(command: Callable) -> Callable:
    """What a user can mend is said in a sentence, not in a traceback."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (LookupError, ValueError, OSError, ImportError) as error:
            raise click.ClickException(str(error.args[0]) if isinstance(error, LookupError) else str(error)) from error

    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tfviz.__version__)
def main() -> None:
    """Notebooks that train the Transformer family and let you look inside."""


@main.command()
@click.argument("names", nargs=-1)
@click.option("--preset", default="cpu", show_default=True, help="smoke, cpu, gpu or shown (notebooks/presets.yaml)")
@click.option("-p", "given", multiple=True, metavar="KEY=VALUE", help="a parameter, over the preset's; repeatable")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="where results go"
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="notebooks at a time")
@click.option("--force", is_flag=True, help="run again what is finished and unchanged")
@click.option("--grid", multiple=True, metavar="KEY=V1,V2,...", help="run every combination of values; repeatable")
@click.option("--scheduler", metavar="ADDRESS", help="a Dask cluster that runs already, such as tcp://host:8786")
@_explained
def run(
    names: tuple[str, ...],
    preset: str,
    given: tuple[str, ...],
    out: Path,
    jobs: int,
    force: bool,
    grid: tuple[str, ...],
    scheduler: str | None,
) -> None:
    """Run notebooks through papermill: all of them, or those named (10_gpt, or just 10)."""
    from tfviz.suite import notebooks
    from tfviz.suite.run import run as run_notebooks

    out, known = out.resolve(), notebooks.defaults(notebooks.find(names)) if given or grid else {}
    mine = {name: notebooks.read(known, name, value) for name, value in map(_pair, given)}
    over = {name: [notebooks.read(known, name, value) for value in values] for name, values in map(_values, grid)}
    results = run_notebooks(names, preset, mine, out, jobs, force, click.echo, over=over, scheduler=scheduler)
    failed = [result.title for result in results if result.status == "failed"]
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
    click.echo(f"{len(results) - len(failed)} of {len(results)} notebooks ran; look at {out / 'index.html'}")
    sys.exit(bool(failed))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"-p {text}: write it as KEY=VALUE, for example -p steps=200")
    return name, value


def _values(text: str) -> tuple[str, list[str]]:
    """A list keeps its commas in brackets, a text its own in quotation marks."""
    import yaml

    name, equals, values = text.partition("=")
    try:
        nodes = yaml.compose(listed := f"[{values}]").value
    except yaml.YAMLError:
        nodes = []
    if not equals or not name or not nodes:
        raise ValueError(f"--grid {text}: write it as KEY=V1,V2,..., for example --grid seed=1,2,3 or word=a,'b, c'")
    return name, [
        node.value if isinstance(node, yaml.ScalarNode) else listed[node.start_mark.index : node.end_mark.index]
        for node in nodes
    ]


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@_explained
def lab(arguments: tuple[str, ...]) -> None:
    """Open the notebooks in JupyterLab; ARGUMENTS go to it as they are."""
    from tfviz.suite import notebooks

    where = notebooks.folder()
    if where.parent == Path(tfviz.__file__).parent:  # an installed package: give the reader copies to write in
        where = Path(shutil.copytree(where, "tfviz-notebooks", dirs_exist_ok=True))
    os.execv(
        sys.executable, [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={where.resolve()}", *arguments]
    )


@main.group()
def data() -> None:
    """Corpora: what there is, fetch, verify, where."""


@data.command("list")
@_explained
def list_corpora() -> None:
    """Name, state, content, licence and source of each corpus."""
    from tfviz.text import corpora

    for corpus in corpora.CORPORA.values():
        click.echo(
            f"{corpus.name:12} {corpora.verify(corpus.name):9} {corpus.about}; {corpus.licence}; {corpus.source}"
        )


@data.command()
@click.argument("names", nargs=-1, required=True)
@_explained
def fetch(names: tuple[str, ...]) -> None:
    """Download what is not here; a folder named by TFVIZ_DATA wins."""
    from tfviz.text import corpora

    for name in names:
        click.echo("\n".join(map(str, corpora.fetch(name))))


@data.command()
@click.argument("names", nargs=-1)
@_explained
def verify(names: tuple[str, ...]) -> None:
    """Check SHA-256 sums; the exit status is 1 if a file differs from the published one."""
    from tfviz.text import corpora

    states = {name: corpora.verify(name) for name in names or corpora.CORPORA}
    for name, state in states.items():
        click.echo(f"{name:12} {state}")
    sys.exit("differs" in states.values())


@data.command()
@click.argument("name", required=False)
@_explained
def path(name: str | None) -> None:
    """Where the files of a corpus stand, a line each, or where all downloads go."""
    from tfviz.text import corpora

    places = corpora.paths(name) if name else [os.environ.get("TFVIZ_DATA") or corpora.cache()]
    click.echo("\n".join(map(str, places)))


@main.command()
def doctor() -> None:
    """Versions, device, data, fonts, a browser; the exit status is 1 if something is missing."""
    from tfviz.suite.doctor import examine

    well = True
    for good, what, how in examine():
        click.echo(f"{'ok ' if good else '-- '} {what:26} {how}")
        well &= good
    sys.exit(not well)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), help="write there and leave FILES as they are")
@click.option("--pictures", type=click.Path(file_okay=False, path_type=Path), help="also write tagged pictures there")
@click.option("--check", is_flag=True, help="change nothing; exit with 1 if something would change")
@_explained
def clean(files: tuple[Path, ...], to: Path | None, pictures: Path | None, check: bool) -> None:
    """Reduce notebooks to what a commit keeps."""
    import nbformat

    from tfviz.files import atomic
    from tfviz.suite import notebooks

    changed = False
    for file in files:
        before = file.read_text(encoding="utf-8")
        try:
            notebook = notebooks.clean(nbformat.reads(before, as_version=4))
            after = nbformat.writes(notebook) + "\n"
        except (ValueError, TypeError, AttributeError, KeyError, nbformat.ValidationError) as error:
            raise ValueError(f"{file} is not a notebook: {str(error).splitlines()[0]}") from error
        if pictures:
            _write(notebooks.pictures(notebook), pictures)
        if after != before or to:
            changed = True
            click.echo(f"{'would change' if check else 'cleaned'} {file}")
            if not check:
                with atomic((to or file.parent) / file.name) as draft:
                    draft.write_text(after, encoding="utf-8")
    sys.exit(check and changed)


def _write(pictures: dict[str, bytes], folder: Path) -> None:
    from tfviz.files import atomic

    for name, png in pictures.items():
        with atomic(folder / f"{name}.png") as draft:
            draft.write_bytes(png)
