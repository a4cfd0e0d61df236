"""The command `tfviz`."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path

import click

import tfviz
from tfviz.suite.terminal import FOLDER, PAGE, ended_by_signals, explained


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tfviz.__version__)
def main() -> None:
    """Notebooks that train the Transformer family and let you look inside."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that knows few letters shows the others by number
            stream.reconfigure(errors="backslashreplace")


@main.command()
@click.argument("names", nargs=-1)
@click.option("--preset", default="cpu", show_default=True, help="smoke, cpu, gpu or shown (notebooks/presets.yaml)")
@click.option("-p", "given", multiple=True, metavar="KEY=VALUE", help="a parameter, over the preset's; repeatable")
@click.option("--out", type=FOLDER, default="runs", show_default=True, help="where results go")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="notebooks at a time")
@click.option("--force", is_flag=True, help="run again what is finished and unchanged")
@click.option("--grid", multiple=True, metavar="KEY=V1,V2,...", help="run every combination of values; repeatable")
@click.option("--scheduler", metavar="ADDRESS", help="a Dask cluster that runs already, such as tcp://host:8786")
@explained
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
    """Run notebooks through papermill: all of them, or those named (12_gpt, or just 12)."""
    from tfviz.suite import notebooks, options
    from tfviz.suite.run import run as run_notebooks

    out, known = Path(os.path.realpath(out)), notebooks.defaults(notebooks.find(names)) if given or grid else {}
    mine, over = options.given(known, given), options.varied(known, grid)
    with ended_by_signals():
        results = run_notebooks(names, preset, mine, out, jobs, force, click.echo, over=over, scheduler=scheduler)
    failed = [result.title for result in results if result.status == "failed"]
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
    click.echo(f"{len(results) - len(failed)} of {len(results)} notebooks ran; look at {out / 'index.html'}")
    sys.exit(bool(failed))


@main.command()
@click.argument("names", nargs=-1)
@click.option("--preset", default="cpu", show_default=True, help="smoke, cpu, gpu or shown (notebooks/presets.yaml)")
@click.option("--out", type=FOLDER, default="site", show_default=True, help="where the pages go")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="lessons at a time")
@explained
def site(names: tuple[str, ...], preset: str, out: Path, jobs: int) -> None:
    """Make the site: lessons run and alive (all, or NAMES), the guide, the reference, the measurements."""
    from tfviz.suite.site import build

    with ended_by_signals():
        failed = build(names, preset, Path(os.path.realpath(out)), jobs, click.echo)
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
    click.echo(f"look at {out / 'index.html'}")
    sys.exit(bool(failed))


@main.command()
@click.option("--out", type=PAGE, default="demo.html", show_default=True)
@click.option("--no-browser", is_flag=True, help="write the page and do not open it")
@explained
def demo(out: Path, no_browser: bool) -> None:
    """A small GPT in one page, opened in your browser: type, choose a letter, switch a head off."""
    from tfviz.suite.demo import page

    page(out, not no_browser, click.echo)


@main.command("look")
@click.argument("model")
@click.argument("text", default="")
@click.option("--image", type=click.Path(path_type=Path), help="a picture, for a model that sees")
@click.option("--compare", "other", metavar="OTHER", help="a second checkpoint: what it looks at otherwise")
@click.option("--out", type=PAGE, default="look.html", show_default=True)
@explained
def look_at(model: str, text: str, image: Path | None, other: str | None, out: Path) -> None:
    """One page with all that MODEL looks at in TEXT: a name on the Hub, or a folder with config.json and weights."""
    from tfviz.suite.looking import page

    page(model, text, image, other, out, click.echo)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@explained
def lab(arguments: tuple[str, ...]) -> None:
    """Open the notebooks in JupyterLab; ARGUMENTS go to it as they are."""
    from tfviz.suite.lab import open_lab

    open_lab(arguments, click.echo)


@main.group()
@explained
def data() -> None:
    """Corpora: what there is, fetch, verify, where."""
    if (local := os.environ.get("TFVIZ_DATA")) and not os.path.isdir(os.path.expanduser(local)):
        raise ValueError(f"TFVIZ_DATA is {local}, which is no folder; make it, name another, or unset the variable")


@data.command("list")
@explained
def list_corpora() -> None:
    """Name, state, content, licence and source of each corpus."""
    from tfviz.text import corpora

    for corpus in corpora.CORPORA.values():
        click.echo(
            f"{corpus.name:12} {corpora.verify(corpus.name):9} {corpus.about}; {corpus.licence}; {corpus.source}"
        )


@data.command()
@click.argument("names", nargs=-1, required=True)
@explained
def fetch(names: tuple[str, ...]) -> None:
    """Download what is not here; a folder named by TFVIZ_DATA wins."""
    from tfviz.text import corpora

    for name in names:
        click.echo("\n".join(map(str, corpora.fetch(name))))


@data.command()
@click.argument("names", nargs=-1)
@explained
def verify(names: tuple[str, ...]) -> None:
    """Check SHA-256 sums; the exit status is 1 if a file differs from the published one."""
    from tfviz.text import corpora

    states = {name: corpora.verify(name) for name in names or corpora.CORPORA}
    for name, state in states.items():
        click.echo(f"{name:12} {state}")
    sys.exit("differs" in states.values())


@data.command()
@click.argument("name", required=False)
@explained
def path(name: str | None) -> None:
    """Where the files of a corpus stand, a line each, or where all downloads go."""
    from tfviz.text import corpora

    places = corpora.paths(name) if name else [os.environ.get("TFVIZ_DATA") or corpora.cache()]
    click.echo("\n".join(map(str, places)))


@main.command()
@explained
def doctor() -> None:
    """Versions, device, data, fonts, a browser; the exit status is 1 if something is missing."""
    from tfviz.suite.doctor import examine

    well = True
    for good, what, how in examine():
        click.echo(f"{'ok ' if good else '-- '} {what:26} {how}")
        well &= good
    sys.exit(not well)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", type=FOLDER, help="write there and leave FILES as they are")
@click.option("--pictures", type=FOLDER, help="also write tagged pictures there")
@click.option("--check", is_flag=True, help="change nothing; exit with 1 if something would change")
@explained
def clean(files: tuple[Path, ...], to: Path | None, pictures: Path | None, check: bool) -> None:
    """Reduce notebooks to what a commit keeps."""
    from tfviz.suite import cleaning

    changed = cleaning.clean(files, to, pictures, check, click.echo)
    sys.exit(int(check and changed))
