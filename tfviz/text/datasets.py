"""Data sets for training: labelled reviews, sentence pairs, ratings and bytes; `corpora` locates their files."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import checks
from tfviz.shapes import Float, Int, UInt8
from tfviz.text import archives, corpora

__all__ = ["Ratings", "Reviews", "enwik8", "pairs", "parallel", "ratings", "reviews"]

LANGUAGES = ("en", "de", "fr")
PAIR_SPLITS = ("train", "val", "test_2016_flickr")


@dataclass(frozen=True)
class Reviews:
    """Reviews and their sentiment labels: 1 for positive, 0 for negative."""

    texts: list[str]
    labels: Int[Tensor, "review"]

    def __post_init__(self) -> None:
        checks.equal_lengths(texts=self.texts, labels=self.labels)
        if not ((self.labels == 0) | (self.labels == 1)).all():
            raise ValueError("labels must be 1 (positive) or 0 (negative)")


@dataclass(frozen=True)
class Ratings:
    """Ratings of films by users, in stars.

    Attributes:
        users: id of each rating's user, `[rating]`, counted from 0.
        movies: id of each rating's film, `[rating]`: its index in `titles`.
        values: each rating in stars, `[rating]`, from 0.5 to 5 in halves.
        titles: title of each film.
        genres: genres of each film, such as "Comedy|Romance"; an empty list if they are not known.
    """

    users: Int[Tensor, "rating"]
    movies: Int[Tensor, "rating"]
    values: Float[Tensor, "rating"]
    titles: list[str]
    genres: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        checks.equal_lengths(users=self.users, movies=self.movies, values=self.values)
        checks.token_ids(users=self.users, movies=self.movies)
        if self.genres:
            checks.equal_lengths(titles=self.titles, genres=self.genres)
        if len(self.movies) and int(self.movies.max()) >= len(self.titles):
            raise ValueError(f"movies hold {int(self.movies.max())}, and there are {len(self.titles)} titles, from 0")
        if not self.values.isfinite().all():
            raise ValueError("values hold NaN or infinity; give stars, 0.5 to 5")

    def split(self, train_fraction: float = 0.9, seed: int = 0) -> tuple[Ratings, Ratings]:
        """Return a random `train_fraction` of the ratings for training and the rest for evaluation, with unchanged ids.

        Raises:
            ValueError: one part would be empty.
        """
        checks.seed(seed)
        total = len(self.users)
        cut = int(train_fraction * total) if 0 < train_fraction < 1 else 0
        if not 0 < cut < total:
            raise ValueError(
                f"train_fraction is {train_fraction} of {total} ratings; it must leave at least one on each side"
            )
        order = torch.randperm(total, generator=torch.Generator().manual_seed(seed))
        return self._select(order[:cut]), self._select(order[cut:])

    def _select(self, rows: Tensor) -> Ratings:
        return Ratings(self.users[rows], self.movies[rows], self.values[rows], self.titles, self.genres)


def reviews(split: str = "train") -> Reviews:
    """Load a split of the Large Movie Review Dataset, `train` or `test`: 25,000 reviews, half of them positive.

    Reviews are sorted by their numbers, the positive review of a number before the negative one, so that positive and
    negative reviews alternate in the original data. `<br />` is replaced by a newline. See Maas et al. 2011,
    https://aclanthology.org/P11-1015.

    Raises:
        ValueError: there is no such split, or the archive or folder does not have the original layout
            `aclImdb/SPLIT/{pos,neg}/ID_STARS.txt`.
    """
    checks.one_of(("train", "test"), split=split)
    location = corpora.fetch("imdb")[0]
    review = re.compile(rf"(?:\./)?aclImdb/{split}/(pos|neg)/(?:(\d+)_\d+\.txt|[^.].*)")  # hidden files are skipped
    rows, folders = [], set()
    for name, content in archives.iter_files(location, review.fullmatch):
        folders.add(name.rpartition("/")[0])
        if match := review.fullmatch(name):
            if match[2] is None:
                raise ValueError(f"{location}: {name} is not called ID_STARS.txt; rename it or take it out")
            rows.append((int(match[2]), match[1] == "neg", archives.decode(content, f"{location}: {name}")))
    counts = Counter("neg" if negative else "pos" for _, negative, _ in rows)
    if len(counts) < 2:
        raise ValueError(
            f"{location}: looked for aclImdb/{split}/{{pos,neg}}/ID_STARS.txt and found {counts['pos']} of pos and "
            f"{counts['neg']} of neg; the folders with files in them are: {', '.join(sorted(folders)[:8]) or 'none'}; "
            "put the original archive, or what it unpacks to, in its place"
        )
    rows.sort()
    labels = torch.tensor([int(not negative) for _, negative, _ in rows])
    return Reviews([text.replace("<br />", "\n") for *_, text in rows], labels)


def pairs(source: str, target: str, split: str = "train") -> tuple[list[str], list[str]]:
    """Load a split of Multi30k: image captions in two languages, aligned line by line.

    The languages are en, de and fr. There are 29,000 pairs in `train`, 1,014 in `val` and 1,000 in `test_2016_flickr`.
    See Elliott et al. 2016, https://aclanthology.org/W16-3210, and 2017 (French), https://aclanthology.org/W17-4718.

    Raises:
        ValueError: there is no such language or split, or source and target are the same language; otherwise as for
            `parallel`.
    """
    checks.one_of(LANGUAGES, source=source, target=target)
    checks.one_of(PAIR_SPLITS, split=split)
    if source == target:
        raise ValueError(f"source and target are both {source!r}; give two languages of {', '.join(LANGUAGES)}")
    return parallel(*(corpora.fetch("multi30k", f"{split}.{language}.gz")[0] for language in (source, target)))


def parallel(source_file: str | Path, target_file: str | Path) -> tuple[list[str], list[str]]:
    """Read sentence pairs from two UTF-8 files, plain or gzipped, whose lines with the same number correspond.

    Raises:
        ValueError: a line is empty, or one file has more lines than the other; nothing is dropped silently.
    """
    source, target = _lines(Path(source_file)), _lines(Path(target_file))
    if len(source) != len(target):
        counts = f"{source_file} has {len(source)} lines and {target_file} has {len(target)}"
        raise ValueError(f"{counts}; line n of one must translate line n of the other")
    return source, target


def ratings() -> Ratings:
    """Load MovieLens `ml-latest-small`: about 100,000 ratings of films by users.

    See Harper & Konstan 2015, https://doi.org/10.1145/2827872.

    Raises:
        ValueError: a row is damaged (the message names file and line), a film is listed twice, or a user rated a film
            twice.
    """
    movies_file, ratings_file = corpora.readable_files("movielens")
    movie_rows = _table(movies_file, movieId=int, title=str, genres=str)
    _check_unique([number for number, *_ in movie_rows], f"{movies_file}: movie")
    movie_of = {number: (title, genres) for number, title, genres in movie_rows}

    def movie_id(cell: str) -> int:
        if int(cell) not in movie_of:
            raise ValueError(f"movie {cell} is not in {movies_file}")
        return int(cell)

    rating_rows = _table(ratings_file, userId=int, movieId=movie_id, rating=_stars)
    _check_unique([(user, movie) for user, movie, _ in rating_rows], f"{ratings_file}: the pair of user and movie")
    users, movies, values = map(torch.tensor, zip(*rating_rows))
    users = torch.unique(users, return_inverse=True)[1]
    numbers, movies = torch.unique(movies, return_inverse=True)
    titles, genres = zip(*(movie_of[number] for number in numbers.tolist()))
    return Ratings(users, movies, values, list(titles), list(genres))


def enwik8() -> tuple[UInt8[Tensor, "train"], UInt8[Tensor, "valid"], UInt8[Tensor, "test"]]:
    """Load enwik8, 100 million bytes of Wikipedia: 90 million for training, 5 for validation and 5 for testing.

    This is the usual split (Al-Rfou et al. 2019; Dai et al. 2019). A file of another length is split in the same
    proportions.

    Raises:
        ValueError: the file is damaged.
    """
    content = bytearray(archives.read_bytes(corpora.readable_files("enwik8")[0]))
    train, rest, end = (len(content) * percent // 100 for percent in (90, 95, 100))
    return torch.frombuffer(content, dtype=torch.uint8).split([train, rest - train, end - rest])


def _check_unique(values: Iterable[Any], what: str) -> None:
    value, count = Counter(values).most_common(1)[0]
    if count > 1:
        raise ValueError(f"{what} {value} occurs {count} times; keep one of them")


def _lines(path: Path) -> list[str]:
    # str.splitlines would also split at U+2028 and similar characters, and shift the lines that follow
    lines = [line.removesuffix("\r") for line in archives.read_text(path).removesuffix("\n").split("\n")]
    if empty := [index for index, line in enumerate(lines, 1) if not line.strip()]:
        raise ValueError(f"{path}, line {empty[0]}, is empty; take this line out of both files")
    return lines


def _table(part: archives.Part, **columns: Callable[[str], Any]) -> list[list[Any]]:
    """Parse the named columns of a CSV file, each with its function; other columns are ignored."""
    reader = csv.DictReader(io.StringIO(archives.read_text(part), newline=""), strict=True)
    try:
        if missing := columns.keys() - set(reader.fieldnames or []):
            raise ValueError(f"it has no column {', '.join(sorted(missing))}")
        rows = []
        for row in reader:
            if None in row or None in row.values():  # a cell too many, or too few
                raise ValueError("it does not have as many cells as the first line")
            rows.append([parse(row[name]) for name, parse in columns.items()])
        if not rows:
            raise ValueError("there is no row below the head")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{part}, line {reader.reader.line_num}: {error}; mend the file or fetch it again") from error
    return rows


def _stars(cell: str) -> float:
    if float(cell) * 2 not in range(1, 11):
        raise ValueError(f"a rating is 0.5 to 5 stars in halves, not {cell}")
    return float(cell)
