"""Files of a learned demand model, and how far they differ from what made them → a folder, or none at all."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leadtime.domain.errors import DependencyFailed
from leadtime.forecast.model import FloatColumn

MOST_DIFFERENCE = 1e-5  # of the logarithm of demand ÷ level, so of the demand itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Largest difference between what was trained and the published files, relative to the demand said, over ``rows``
    rows."""

    rows: int
    missing_ratio: float
    largest_ratio: float

    def said(self) -> dict[str, float]:
        """As the card has it."""
        return {"rows": self.rows, "missing_ratio": self.missing_ratio, "largest_ratio": self.largest_ratio}


def parity_of(
    served: FloatColumn, own: FloatColumn, *, maker: str, missing_ratio: float, doing: str, cure: str
) -> Parity:
    """Compare logarithms (rows, …) of demand ÷ level: of the files, and of ``maker`` itself.

    Raises DependencyFailed above 1e-5 of the demand, and where one of them says NaN.
    """
    largest = float(np.abs(np.expm1(served - own)).max())
    if not largest <= MOST_DIFFERENCE:
        wrong = f"ONNX and {maker} differ by {largest:.1e} of the demand on {len(own)} rows, more than 1e-5"
        raise DependencyFailed("demand-model-parity", doing, wrong, cure)
    return Parity(rows=len(own), missing_ratio=missing_ratio, largest_ratio=largest)


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to write into; it takes that one's place at the end, and is gone after an error."""
    unfinished = folder.with_name(f".{folder.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _swap(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _swap(unfinished: Path, folder: Path) -> None:
    """Put the finished folder in the place of an earlier one: at any moment one of them is whole."""
    before = folder.with_name(f".{folder.name}-before")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    unfinished.rename(folder)
    shutil.rmtree(before, ignore_errors=True)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Indented, in UTF-8, with a newline at the end."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
