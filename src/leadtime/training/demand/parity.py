"""What a demand model's files say beside what made them → how far they differ, or a refusal."""

from dataclasses import dataclass

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
