"""Rows of a table → one number that changes when any value does, whatever the order of rows and the number of files.

A row's hash is the SplitMix64 finaliser (Steele, Lea, Flood, OOPSLA 2014) of a multilinear sum over its columns; a
table's is the sum of its rows' modulo 2^64. So parts can be added up, in any order. It guards against accidents, not
against forgery. Floats count by their bits, text by BLAKE2b, null as a value of its own.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
_NULL = np.uint64(0xD1B54A32D192ED03)
_M1, _M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
U64 = npt.NDArray[np.uint64]


def bucket(key: str, buckets: int) -> pl.Expr:
    """Which of ``buckets`` an int64 key falls into: SplitMix64 of its bits, modulo; the same wherever it runs."""
    mixed = pl.col(key).reinterpret(signed=False) + _u64(GOLDEN)
    for factor, shift in ((_M1, 30), (_M2, 27)):
        mixed = (mixed ^ (mixed // _u64(2**shift))) * _u64(factor)
    return ((mixed ^ (mixed // _u64(2**31))) % _u64(buckets)).cast(pl.UInt32)


def digest(frame: pl.DataFrame) -> int:
    """Sum of the row hashes of ``frame`` modulo 2^64; 0 for no rows. Columns count in the order of their names."""
    total = np.zeros(frame.height, dtype=np.uint64)
    for place, name in enumerate(sorted(frame.columns)):
        weight = np.uint64((GOLDEN * (2 * place + 1) ^ _M2) & MASK | 1)
        total += _bits(frame[name]) * weight
    return int(np.add.reduce(mixed(total), dtype=np.uint64))


def combined(parts: Sequence[int]) -> int:
    """Digest of a table from the digests of its parts."""
    return sum(parts) & MASK


def _u64(value: int) -> pl.Expr:
    return pl.lit(value, dtype=pl.UInt64)


def mixed(values: U64) -> U64:
    """SplitMix64 of each value."""
    values = values + np.uint64(GOLDEN)
    for factor, shift in ((_M1, 30), (_M2, 27)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))


def _bits(column: pl.Series) -> U64:
    """Every value as 64 bits."""
    if column.dtype == pl.String:
        column = _text_codes(column)
    is_null = column.is_null().to_numpy() if column.null_count() else None
    if column.dtype == pl.Float32:
        bits = column.fill_null(0.0).to_numpy().view(np.uint32).astype(np.uint64)
    elif column.dtype == pl.UInt64:
        bits = column.fill_null(0).to_numpy()
    else:
        bits = column.cast(pl.Int64).fill_null(0).to_numpy().view(np.uint64)
    return bits if is_null is None else np.where(is_null, _NULL, bits)


def _text_codes(column: pl.Series) -> pl.Series:
    """Text → the first 64 bits of its BLAKE2b."""
    texts = column.unique().drop_nulls()
    codes = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts]
    return column.replace_strict(texts, pl.Series(codes, dtype=pl.UInt64), default=None, return_dtype=pl.UInt64)
