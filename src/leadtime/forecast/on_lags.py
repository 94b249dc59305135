"""What the models that remember lags share: one memory, and the path as one answer of many."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from leadtime.forecast import lag_memory, lag_rows
from leadtime.forecast.lag_memory import Lags
from leadtime.forecast.model import MINUTE_S, Band, FloatColumn, TooShort, check_step
from leadtime.forecast.recent import KEPT_MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLags(ABC):
    """A RowsModel on the memory ``lags``; who answers rows is the subclass's business."""

    name: str
    memory: str = "lags"

    def start(self, step_s: int = MINUTE_S) -> Lags:
        """See DemandModel."""
        check_step(self.name, step_s)
        return lag_memory.empty()

    def update(self, state: Lags, at_s: int, value: float | None) -> Lags:
        """See DemandModel."""
        return lag_memory.add(state, at_s, value)

    @abstractmethod
    def row(self, state: Lags) -> FloatColumn | TooShort:
        """See RowsModel."""

    @abstractmethod
    def read(self, rows: FloatColumn, steps: Sequence[int]) -> FloatColumn:
        """See RowsModel."""

    def predict(self, state: Lags, steps: int) -> Band | TooShort:
        """See DemandModel. Asks for every minute of the path: where few are wanted, ``read`` costs less."""
        made = self.row(state)
        if isinstance(made, TooShort):
            return made
        lower, expected, upper = self.read(made[None, :], range(steps))[:, 0, :]
        return Band(expected=expected, lower=lower, upper=upper)


def lag_row(state: Lags, zone: str, name: str, needs: str) -> FloatColumn | TooShort:
    """The columns of ``lag_rows.row``; before the first full hour the refusal of model ``name``, which ``needs`` it."""
    made = lag_rows.row(state, zone)
    if made is not None:
        return made
    return TooShort(
        reason=f"{name} needs {needs}, one of them known",
        needed_s=KEPT_MINUTES * MINUTE_S,
        have_s=min(len(state.recent.minutes), KEPT_MINUTES - 1) * MINUTE_S,
    )
