"""What has to be fitted before it can forecast: minutes of history → a DemandModel, or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from leadtime.forecast.model import DemandModel, FloatColumn, TooShort

Note = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MinuteHistory:
    """Value i is the demand of [start_s + 60·i, +60); NaN is a gap. Longer buckets are held over their minutes."""

    start_s: int
    values: FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFitted:
    """A refusal that has nothing to do with the length of history: an extra that is absent, a budget used up."""

    reason: str


class Trainee(Protocol):
    """A model before it is fitted. ``name`` is that of the model it becomes."""

    @property
    def name(self) -> str:
        """The stable name shown to people."""
        ...

    def fit(
        self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note
    ) -> DemandModel | TooShort | NotFitted:
        """The fitted model. Stops by itself after about ``budget_s`` seconds, with NotFitted or with what it has.

        ``progress`` is called with the share done, 0 to 1; it may raise, which ends the fit. Equal ``seed`` and
        history give an equal model.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A model that learns from its state alone: nothing to fit."""

    model: DemandModel

    @property
    def name(self) -> str:
        """See Trainee."""
        return self.model.name

    def fit(self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note) -> DemandModel:
        """See Trainee."""
        del history, seed, budget_s
        progress(1.0)
        return self.model
