"""One file from the network: no more of it than it can have, and only if its sum is the published one."""

import sys
from pathlib import Path
from typing import IO, Any

from tfviz.text.catalogue import File


def download(name: str, file: File, target: Path) -> None:
    """Bring a file of the corpus `name` to `target`; nothing is left there of one that failed.

    Raises:
        ValueError: what came is larger than `file.most`, or has another sum.
        ConnectionError: nothing came, or it could not be written.
    """
    import pooch

    get = pooch.HTTPDownloader(progressbar=sys.stderr.isatty())

    def bounded(url: str, output: str, manager: Any) -> None:
        with open(output, "wb") as stream:
            get(url, _Bounded(stream, file.most), manager)

    by_hand = f"to go without it, get the file elsewhere and put it at {target}"
    try:
        pooch.retrieve(file.url, f"sha256:{file.sha256}", target.name, target.parent, downloader=bounded)
    except ValueError as error:  # pooch's word for a wrong hash, or our own
        raise ValueError(f"what {file.url} sent is not {name}: {error}; {by_hand}") from error
    except OSError as error:  # requests' errors are OSErrors, a full disk is one too
        raise ConnectionError(f"could not fetch {name} from {file.url}: {error}; {by_hand}") from error


class _Bounded:
    """A file to write to that takes `most` bytes."""

    def __init__(self, stream: IO[bytes], most: int):
        self.stream, self.most, self.taken = stream, most, 0

    def write(self, content: bytes) -> int:
        self.taken += len(content)
        if self.taken > self.most:
            raise ValueError(f"it is larger than {self.most:,} bytes, and was stopped there")
        return self.stream.write(content)

    def flush(self) -> None:
        self.stream.flush()
