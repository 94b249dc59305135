"""A text file, gzip or plain → its lines in pieces of bounded size; and an estimate of how many there are.

The slow, patient reader: used where the fast one met a fault, to say where, and to read on.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

from leadtime.domain.errors import BadTrace
from leadtime.sources.borg.trace_errors import bad_shard, first_line

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 1 << 20
PIECE_BYTES = 16 << 20
CUT = "unexpected end of file"  # how the fast reader's library names a gzip that breaks off


def _unpacked(path: Path) -> Iterator[bytes]:
    """The file's bytes, inflated where it is gzip (several members: one after another). Raises BrokenGzip."""
    with path.open("rb") as file:
        packed = file.read(READ_BYTES)
        inflater = zlib.decompressobj(wbits=31) if packed.startswith(GZIP_MAGIC) else None
        while packed:
            if inflater is None:
                yield packed
            else:
                if inflater.eof:
                    inflater = zlib.decompressobj(wbits=31)
                yield inflater.decompress(packed, PIECE_BYTES)
                packed = inflater.unconsumed_tail or inflater.unused_data
                if packed:
                    continue
            packed = file.read(READ_BYTES)
        if inflater is not None and not inflater.eof:
            raise EOFError(CUT)


def pieces(path: Path) -> Iterator[bytes]:
    """Whole lines, about ``PIECE_BYTES`` at a time; the last line may lack its newline.

    Raises EOFError where gzip breaks off and zlib.error where it is damaged, after the whole lines before the fault.
    """
    rest = b""
    fault: Exception | None = None
    source = _unpacked(path)
    while fault is None:
        try:
            block = next(source)
        except StopIteration:
            break
        except (EOFError, zlib.error) as error:
            fault = error
            block = b""
        rest += block
        if len(rest) < PIECE_BYTES and fault is None:
            continue
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
        rest = rest[end:]
    if fault is not None:
        raise fault
    if rest:
        yield rest


def broken(path: Path, error: BaseException, what: str) -> BadTrace:
    """A gzip file that the fast reader gave up on, with the number of whole rows before the fault."""
    rows = 0
    try:
        for piece in pieces(path):
            rows += piece.count(b"\n")
    except (EOFError, zlib.error):
        pass
    if CUT in str(error):
        return bad_shard(
            "borg-shard-cut", path, f"the gzip breaks off after {rows:,} whole rows",
            "fetch it again: what comes after is lost, and a cut event table has no true last event",
        )  # fmt: skip
    return bad_shard(
        "borg-shard-unreadable", path, f"it is not readable as {what} after {rows:,} rows ({first_line(error)})",
        "fetch or write it again",
    )  # fmt: skip


def head(path: Path) -> bytes:
    """What the first MiB of the file holds, inflated; at most ``PIECE_BYTES``. Faults are met later, by the reader."""
    with path.open("rb") as file:
        packed = file.read(READ_BYTES)
    return zlib.decompressobj(wbits=31).decompress(packed, PIECE_BYTES) if packed.startswith(GZIP_MAGIC) else packed


def estimated_lines(path: Path) -> tuple[int, bool]:
    """→ (lines, whether that is exact): counted in the first MiB of the file and scaled to its size."""
    size = path.stat().st_size
    text = head(path)
    lines = text.count(b"\n") + (bool(text) and not text.endswith(b"\n"))
    if size <= READ_BYTES and len(text) < PIECE_BYTES:
        return lines, True
    return round(lines * size / min(size, READ_BYTES)), False
