"""Real data sets as a model needs them: labelled reviews, sentence pairs, ratings, bytes; found as `corpora` says."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz import bounds
from tfviz.bounds import seed as check_seed
from tfviz.shapes import Float, Int, UInt8
from tfviz.text import archives, corpora

LANGUAGES = ("en", "de", "fr")
PAIR_SPLITS = ("train", "val", "test_2016_flickr")


@dataclass(frozen=True)
class Reviews:
    """Texts and what they say: 1 positive, 0 negative."""

    texts: list[str]
    labels: Int[Tensor, "review"]

    def __post_init__(self) -> None:
        bounds.columns(texts=self.texts, labels=self.labels)
        labels = self.labels if isinstance(self.labels, Tensor) else torch.tensor([2])
        if isinstance(self.texts, str) or not ((labels == 0) | (labels == 1)).all():
            raise ValueError("give a list of texts, and a tensor of labels, each 1 (positive) or 0 (negative)")


@dataclass(frozen=True)
class Ratings:
    """Who gave which film how many stars.

    Attributes:
        users: consecutive ids from 0.
        movies: consecutive ids from 0, of the movies that somebody rated; `titles` are in their order.
        values: stars, 0.5 to 5 in halves.
        genres: of each title, such as "Comedy|Romance", as its file has them; empty where it has none.
    """

    users: Int[Tensor, "rating"]
    movies: Int[Tensor, "rating"]
    values: Float[Tensor, "rating"]
    titles: list[str]
    genres: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        given = {"users": self.users, "movies": self.movies, "values": self.values}
        if not all(isinstance(one, Tensor) for one in given.values()):
            raise TypeError("users, movies and values must be tensors, of one number for each rating")
        bounds.columns(**given)
        bounds.token_ids(users=self.users, movies=self.movies)
        if self.genres:
            bounds.columns(titles=self.titles, genres=self.genres)
        if len(self.movies) and int(self.movies.max()) >= len(self.titles):
            raise ValueError(
                f"movies hold {int(self.movies.max())}, and there are {len(self.titles)} titles, from 0 on"
            )
        if not self.values.isfinite().all():
            raise ValueError("values hold NaN or infinity; give stars, 0.5 to 5")

    def split(self, share: float = 0.9, seed: int = 0) -> tuple[Ratings, Ratings]:
        """A random `share` of the ratings, to train on, and the rest, to measure on; ids and titles stay."""
        check_seed(seed)
        total = len(self.users)
        cut = int(share * total) if 0 < share < 1 else 0
        if not 0 < cut < total:
            raise ValueError(f"share is {share} of {total} ratings; it must leave at least one on each side")
        order = torch.randperm(total, generator=torch.Generator().manual_seed(seed))
        first, rest = (
            Ratings(self.users[rows], self.movies[rows], self.values[rows], self.titles, self.genres)
            for rows in (order[:cut], order[cut:])
        )
        return first, rest


def reviews(split: str = "train") -> Reviews:
    """The Large Movie Review Dataset: 25,000 reviews to train on, 25,000 to test on, half of them positive.

    They come in the order of their numbers, and of one number the positive before the negative: in the original,
    positive and negative alternate. `<br />` is a newline. Maas et al. 2011, https://aclanthology.org/P11-1015.

    Raises:
        LookupError: there is no such split.
        ValueError: the archive or folder is not in the original's layout `aclImdb/SPLIT/{pos,neg}/ID_STARS.txt`; a
            review is there twice, or its stars say the other thing than its folder.
    """
    _among("split", split, ("train", "test"))
    place = corpora.fetch("imdb")[0]
    here = rf"(?:\./)?aclImdb/{split}/(pos|neg)/"
    wanted, others = (
        re.compile(here + r"(\d{1,9})_(\d{1,9})\.txt"),
        re.compile(here + r"(?!\.).*"),
    )  # .* is a file manager's
    rows, held = [], set()
    for name, read in archives.files(place):
        held.add(name.rpartition("/")[0])
        if found := wanted.fullmatch(name):
            _agree(place, name, found[1], int(found[3]))
            rows.append((int(found[2]), found[1] == "neg", name, archives.decoded(read(), f"{place}: {name}")))
        elif others.fullmatch(name):
            raise ValueError(f"{place}: {name} is not called ID_STARS.txt; rename it or take it out")
    rows.sort()
    for (*one, first, _), (*other, second, _) in pairwise(rows):
        if one == other:
            raise ValueError(f"{place}: {first} and {second} have one number; take one of them out")
    kinds = Counter("neg" if negative else "pos" for _, negative, _, _ in rows)
    if len(kinds) < 2:
        raise ValueError(
            f"{place}: looked for aclImdb/{split}/{{pos,neg}}/ID_STARS.txt and found {kinds['pos']} of pos and "
            f"{kinds['neg']} of neg; the folders with files in them are: {', '.join(sorted(held)[:8]) or 'none'}; "
            "put the original archive, or what it unpacks to, in its place"
        )
    labels = torch.tensor([int(not negative) for _, negative, _, _ in rows])
    return Reviews([text.replace("<br />", "\n") for *_, text in rows], labels)


def pairs(source: str, target: str, split: str = "train") -> tuple[list[str], list[str]]:
    """Captions of Multi30k in two languages, line by line translations of each other.

    29,000 pairs to train on, 1,014 of `val`, 1,000 of `test_2016_flickr`, of en, de and fr.
    Elliott et al. 2016, https://aclanthology.org/W16-3210, and 2017 (French), https://aclanthology.org/W17-4718.

    Raises:
        LookupError: there is no such language or split.
        ValueError: two times one language; the files do not fit; see `parallel`.
    """
    _among("language", source, LANGUAGES)
    _among("language", target, LANGUAGES)
    _among("split", split, PAIR_SPLITS)
    if source == target:
        raise ValueError(f"source and target are both {source!r}; give two languages of {', '.join(LANGUAGES)}")
    return parallel(*(corpora.fetch("multi30k", f"{split}.{language}.gz")[0] for language in (source, target)))


def parallel(source_file: str | Path, target_file: str | Path) -> tuple[list[str], list[str]]:
    """Your own sentence pairs: two UTF-8 files, plain or .gz, whose lines translate each other.

    Raises:
        ValueError: a line is empty, or one file has more lines than the other. Nothing is left out silently.
    """
    source, target = _lines(Path(source_file)), _lines(Path(target_file))
    if len(source) != len(target):
        raise ValueError(
            f"{source_file} has {len(source)} lines and {target_file} has {len(target)}; "
            "line n of one must translate line n of the other"
        )
    return source, target


def ratings() -> Ratings:
    """MovieLens, its latest small edition: about 100,000 ratings of films.

    Harper & Konstan 2015, https://doi.org/10.1145/2827872.

    Raises:
        ValueError: a row is damaged; names the file and the line. A film is listed twice, or rated twice by one user.
    """
    movies_file, ratings_file = corpora.parts("movielens")
    named = _table(movies_file, "genres", movieId=_number, title=str)
    titles = {number: title for number, title, *_ in named}
    genres = {number: kinds for number, _, kinds in named} if len(named[0]) == 3 else {}
    if len(titles) < len(named):
        twice = next(number for number, count in Counter(number for number, *_ in named).items() if count > 1)
        raise ValueError(f"{movies_file}: movie {twice} stands there twice; take one of them out")

    def listed(cell: str) -> int:
        if (number := _number(cell)) not in titles:
            raise ValueError(f"movie {cell} is not in {movies_file}")
        return number

    rated = _table(ratings_file, userId=_number, movieId=listed, rating=_stars)
    (user, movie), count = Counter((user, movie) for user, movie, _ in rated).most_common(1)[0]
    if count > 1:
        raise ValueError(f"{ratings_file}: user {user} rates movie {movie} {count} times; leave one of them")
    users, movies, values = map(torch.tensor, zip(*rated))
    users = torch.unique(users, return_inverse=True)[1]
    numbers, movies = torch.unique(movies, return_inverse=True)
    kept = numbers.tolist()
    return Ratings(users, movies, values, [titles[one] for one in kept], [genres[one] for one in kept if genres])


def enwik8() -> tuple[UInt8[Tensor, "train"], UInt8[Tensor, "valid"], UInt8[Tensor, "test"]]:
    """Bytes of Wikipedia to train, validate and test on: 90, 5 and 5 of its 100 million.

    The usual split (Al-Rfou et al. 2019; Dai et al. 2019). Of a file of another length it is the same shares, in order.

    Raises:
        ValueError: the file is damaged or has fewer than 20 bytes.
    """
    part = corpora.parts("enwik8")[0]
    content = bytearray(archives.content(part))
    if len(content) < 20:
        raise ValueError(f"{part} has {len(content)} bytes; shares of 90, 5 and 5 % need at least 20")
    train, rest, end = (len(content) * percent // 100 for percent in (90, 95, 100))
    return torch.frombuffer(content, dtype=torch.uint8).split([train, rest - train, end - rest])


def _among(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise LookupError(f"there is no {what} {name!r}; there are: {', '.join(known)}")


def _agree(place: Path, name: str, kind: str, stars: int) -> None:
    """Reviews of 1 to 4 stars are negative, of 7 to 10 positive; those between are not in the collection."""
    if stars not in (range(7, 11) if kind == "pos" else range(1, 5)):
        raise ValueError(f"{place}: {name} has {stars} stars and stands in {kind}; rename it or take it out")


def _lines(path: Path) -> list[str]:
    text = archives.decoded(archives.content(path), str(path))
    # only \n ends a line: str.splitlines would also cut at U+2028 and the like, and shift all that follows
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if empty := [number for number, line in enumerate(lines, 1) if not line.strip()]:
        raise ValueError(f"{path}, line {empty[0]}, is empty; take this line out of both files")
    return lines


def _table(part: archives.Part, more: str = "", **columns: Callable[[str], Any]) -> list[list[Any]]:
    """The first columns of a CSV file, each as its function reads it; then `more`, if that is the next one.

    Other columns are left alone.
    """
    text = archives.decoded(archives.content(part), str(part))
    reader, rows = csv.reader(io.StringIO(text, newline=""), strict=True), []
    try:
        if (head := next(reader, []))[: len(columns)] != list(columns):
            raise ValueError(f"the first columns must be {', '.join(columns)}, not {', '.join(head) or 'nothing'}")
        if more and head[len(columns) : len(columns) + 1] == [more]:
            columns = {**columns, more: str}
        for row in reader:
            if len(row) != len(head):
                raise ValueError(f"{len(row)} cells where the head has {len(head)}")
            rows.append([read(cell) for read, cell in zip(columns.values(), row)])
        if not rows:
            raise ValueError("there is no row below the head")
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{part}, line {reader.line_num}: {error}; mend the file or fetch it again") from error
    return rows


def _number(cell: str) -> int:
    """Digits alone: Python's own `int` also reads 1_0 as 10."""
    if not re.fullmatch("[0-9]{1,18}", cell):
        raise ValueError(f"a user or a movie has a whole number of at most 18 digits, not {cell[:40]!r}")
    return int(cell)


def _stars(cell: str) -> float:
    if "_" in cell or float(cell) * 2 not in range(1, 11):
        raise ValueError(f"a rating is 0.5 to 5 stars in halves, not {cell}")
    return float(cell)
