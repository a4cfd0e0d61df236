"""The command `tfviz` and its subcommands."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

import tfviz
from tfviz.extras import extra

FOLDER_TYPE = click.Path(file_okay=False, path_type=Path)
PAGE_TYPE = click.Path(dir_okay=False, path_type=Path)


class Commands(click.Group):
    """A group of commands that report errors that the user can fix as one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        Raises:
            click.ClickException: the command raised an error that the user can fix.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `tfviz data list | head`: click ends quietly
            raise
        except (LookupError, ValueError, OSError, ImportError) as error:
            raise click.ClickException(_message(error)) from error


def _message(error: Exception) -> str:
    """Return an error's message without the errno of an `OSError` and the quotation marks of a `KeyError`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error.args[0]) if isinstance(error, LookupError) and error.args else str(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tfviz.__version__)
def main() -> None:
    """Run and open notebooks that train Transformer models and show what happens inside them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot encode a character shows its escape
            stream.reconfigure(errors="backslashreplace")


@main.command()
@click.argument("names", nargs=-1)
@click.option("--preset", default="cpu", show_default=True, help="smoke, cpu, gpu or shown (notebooks/presets.yaml)")
@click.option("-p", "values", multiple=True, metavar="KEY=VALUE", help="a parameter, over the preset's; repeatable")
@click.option("--out", type=FOLDER_TYPE, default="runs", show_default=True, help="where results go")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="notebooks at a time")
@click.option("--force", is_flag=True, help="also run notebooks that are finished and unchanged")
@click.option("--grid", multiple=True, metavar="KEY=V1,V2,...", help="run every combination of values; repeatable")
@click.option("--timeout", type=click.IntRange(1), metavar="SECONDS", help="that a cell may take; unlimited by default")
@click.option("--without-answers", is_flag=True, help="leave out the answers of exercises and questions, for a class")
def run(
    names: tuple[str, ...],
    preset: str,
    values: tuple[str, ...],
    out: Path,
    jobs: int,
    force: bool,
    grid: tuple[str, ...],
    timeout: int | None,
    without_answers: bool,
) -> None:
    """Run notebooks with papermill: all lessons, or NAMES (12_gpt, or just 12)."""
    with extra("lessons"):
        from tfviz.lessons import notebooks, runner

    paths = notebooks.find(names)
    overrides, varied = notebooks.parse_values(values, paths), notebooks.parse_grid(grid, paths)
    if both := overrides.keys() & varied.keys():
        raise ValueError(f"{', '.join(sorted(both))}: given with -p and with --grid; choose one")
    more: Any = {"varied": varied, "timeout": timeout, "without_answers": without_answers}
    try:
        runs = runner.run(names, preset, overrides, out, jobs, force, **more)
    except KeyboardInterrupt:
        click.echo("stopped; run the same command again to run only the notebooks that are left", err=True)
        raise
    failed = [each.title for each in runs if each.outcome.status == "failed"]
    click.echo(f"{len(runs) - len(failed)} of {len(runs)} notebooks ran; look at {out / 'index.html'}")
    _exit(failed)


def _exit(failed: list[str]) -> None:
    """Exit with status 1 after listing the notebooks that failed; with status 0 if none failed."""
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
    sys.exit(bool(failed))


@main.command()
@click.argument("names", nargs=-1)
@click.option("--preset", default="shown", show_default=True, help="smoke, cpu, gpu or shown (notebooks/presets.yaml)")
@click.option("--out", type=FOLDER_TYPE, default="site", show_default=True, help="where the pages go")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="lessons at a time")
def site(names: tuple[str, ...], preset: str, out: Path, jobs: int) -> None:
    """Build the site: executed, interactive lessons (all, or NAMES), the guide, the reference and the measurements."""
    with extra("lessons"):
        from tfviz.lessons.site import build

    failed = build(names, preset, out, jobs)
    click.echo(f"look at {out / 'index.html'}")
    _exit(failed)


@main.command()
@click.argument("names", nargs=-1)
@click.option("--all", "complete", is_flag=True, help="list what is bound, too, and comparisons in words")
def claims(names: tuple[str, ...], complete: bool) -> None:
    """List numbers in the prose of lessons (all, or NAMES) that no code, output or check supports."""
    with extra("lessons"):
        from tfviz.lessons import notebooks, prose

    found = [
        (path.stem, each) for path in notebooks.find(names) for each in prose.quantities(notebooks.read(path), complete)
    ]
    unbound = [name for name, each in found if not each.bound]
    for name, each in found:
        if complete or not each.bound:
            click.echo(f"{name} [{each.cell}] {each.bound or 'UNBOUND'}: {each.text!r} in: {each.sentence}")
    click.echo(f"{len(unbound)} of {len(found)} are unbound")
    sys.exit(bool(unbound) and not complete)


@main.command()
@click.option("--out", type=PAGE_TYPE, default="demo.html", show_default=True)
@click.option("--no-browser", is_flag=True, help="write the page and do not open it")
def demo(out: Path, no_browser: bool) -> None:
    """Write a page with a small GPT and open it in a browser: type, choose a letter, switch a head off."""
    _check_page(out)
    from tfviz.lessons.demo import page

    page(out, not no_browser)


@main.command()
@click.argument("model")
@click.argument("text", default="")
@click.option("--image", type=click.Path(path_type=Path), help="a picture, for a vision model")
@click.option("--compare", "other", metavar="OTHER", help="a second checkpoint: show where their attention differs")
@click.option("--out", type=PAGE_TYPE, default="look.html", show_default=True)
def look(model: str, text: str, image: Path | None, other: str | None, out: Path) -> None:
    """Write a page with the attention of MODEL on TEXT; MODEL is a name on the Hub or a folder with a checkpoint."""
    _check_page(out)
    from tfviz.lessons.look_page import page

    page(model, text, image, other, out)


def _check_page(out: Path) -> None:
    """Raise ValueError unless the file name ends in .html or .htm."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"cannot write {out.name!r}: the page is written as .html; of a view in it, save .png or .svg")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> None:
    """Open the notebooks in JupyterLab, which receives ARGUMENTS unchanged."""
    with extra("lessons"):
        from tfviz.lessons.lab import open_lab

        open_lab(arguments)


@main.group()
def data() -> None:
    """List, download, verify and locate corpora."""
    if (local := os.environ.get("TFVIZ_DATA")) and not os.path.isdir(os.path.expanduser(local)):
        raise ValueError(f"TFVIZ_DATA is {local}, which is not a folder; make it, name another, or unset the variable")


@data.command("list")
def list_corpora() -> None:
    """List the name, state, content, licence and source of each corpus."""
    from tfviz.text import corpora

    for corpus in corpora.CORPORA.values():
        state = corpora.verify(corpus.name)
        click.echo(f"{corpus.name:12} {state:9} {corpus.about}; {corpus.licence}; {corpus.source}")


@data.command()
@click.argument("names", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> None:
    """Download missing corpora; a folder named by TFVIZ_DATA takes precedence."""
    from tfviz.text import corpora

    for name in names:
        click.echo("\n".join(map(str, corpora.fetch(name))))


@data.command()
@click.argument("names", nargs=-1)
def verify(names: tuple[str, ...]) -> None:
    """Check SHA-256 sums; the exit status is 1 if a file differs from the published one."""
    from tfviz.text import corpora

    states = {name: corpora.verify(name) for name in names or corpora.CORPORA}
    for name, state in states.items():
        click.echo(f"{name:12} {state}")
    sys.exit("differs" in states.values())


@data.command()
@click.argument("name", required=False)
def path(name: str | None) -> None:
    """Print the paths of a corpus's files, present or not; without NAME, the folder of all corpora."""
    from tfviz.text import corpora

    paths = corpora.paths(name) if name else [os.environ.get("TFVIZ_DATA") or corpora.cache()]
    click.echo("\n".join(map(str, paths)))


@main.command()
def doctor() -> None:
    """Report versions, device, data, fonts and browser; the exit status is 1 if something is missing."""
    from tfviz.lessons.doctor import examine

    healthy = True
    for well, what, value in examine():
        click.echo(f"{'ok ' if well else '-- '} {what:26} {value}")
        healthy &= well
    sys.exit(not healthy)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", type=FOLDER_TYPE, help="write there and leave FILES as they are")
@click.option("--pictures", type=FOLDER_TYPE, help="also write tagged pictures there")
def clean(files: tuple[Path, ...], to: Path | None, pictures: Path | None) -> None:
    """Reduce notebooks to the content that is committed."""
    with extra("lessons"):
        from tfviz.lessons.clean import clean as clean_files

    clean_files(files, to, pictures)
