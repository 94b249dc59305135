"""Bytes → a gzip file that is the same wherever and whenever it is written: no name, no time in its header."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

LEVEL = 1  # a generator's shards are read a few times and thrown away; level 6 takes four times as long


@contextmanager
def gzip_file(path: Path) -> Iterator[IO[bytes]]:
    """``path`` opened for writing compressed bytes."""
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0) as packed,
    ):
        yield cast("IO[bytes]", packed)
