"""A series and models → what each says at each origin, fed bucket by bucket: nobody sees beyond an origin.

Models with equal memory are fed once. Buckets longer than a minute are fed as that many equal minutes, all at the
bucket's end. RowsModels give a row at each origin and are read in chunks; the others predict one by one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadtime.forecast.model import MINUTE_S, DemandModel, FloatColumn, RowsModel, TooShort
from leadtime.training.backtest.series import BacktestSeries

CHUNK = 2048
NOTE_EVERY = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One model and the origins at which it is asked: bucket numbers ``first`` ≤ i < ``until``, every ``stride``-th."""

    model: DemandModel
    first: int
    until: int
    stride: int = 1


@dataclass(slots=True, kw_only=True, eq=False)
class Said:
    """What one model said. ``values[bound, k, i]``: lower, expected, upper; path element k of ``steps``; origin i.

    NaN where it was not asked or refused; ``refusal`` is the last reason given.
    """

    values: FloatColumn
    refusal: str | None = None
    answered: int = 0


@dataclass(slots=True, kw_only=True)
class _Speaker:
    """One asked model during the walk, with the rows that wait to be read."""

    asked: Asked
    said: Said
    steps: tuple[int, ...]
    reader: RowsModel | None = None  # told once: asking a protocol costs more than a row
    rows: list[FloatColumn] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    def ask(self, state: Any, origin: int) -> None:
        """Take the model's answer, or its row, at ``origin``."""
        asked = self.asked
        if not asked.first <= origin < asked.until or (origin - asked.first) % asked.stride:
            return
        if self.reader is not None:
            self._queue(self.reader, self.reader.row(state), origin)
            return
        band = asked.model.predict(state, self.steps[-1] + 1)
        if isinstance(band, TooShort):
            self.said.refusal = band.reason
            return
        for k, step in enumerate(self.steps):
            self.said.values[:, k, origin] = band.lower[step], band.expected[step], band.upper[step]
        self.said.answered += 1

    def _queue(self, model: RowsModel, row: FloatColumn | TooShort, origin: int) -> None:
        if isinstance(row, TooShort):
            self.said.refusal = row.reason
            return
        self.rows.append(row)
        self.at.append(origin)
        if len(self.rows) >= CHUNK:
            self.read(model)

    def read(self, model: RowsModel | None) -> None:
        """Answer the rows that wait."""
        if self.rows and model is not None:
            self.said.values[:, :, self.at] = model.read(np.stack(self.rows), self.steps).transpose(0, 2, 1)
            self.said.answered += len(self.rows)
            self.rows.clear()
            self.at.clear()


def walk(
    series: BacktestSeries, asked: Sequence[Asked], steps: Sequence[int], note: Callable[[float], None]
) -> tuple[Said, ...]:
    """What each of ``asked`` says, in their order, at the path elements ``steps`` (minutes ahead − 1, any order).

    ``note`` hears the share done; it may raise to stop the walk.
    """
    order = tuple(sorted(set(steps)))
    speakers = [
        _Speaker(
            asked=one, said=Said(values=np.full((3, len(order), len(series.values)), np.nan)), steps=order,
            reader=one.model if isinstance(one.model, RowsModel) else None,
        )
        for one in asked
    ]  # fmt: skip
    by_memory: dict[str, list[_Speaker]] = {}
    for speaker in speakers:
        by_memory.setdefault(speaker.asked.model.memory, []).append(speaker)
    until = max((one.until for one in asked), default=0)
    values = [None if math.isnan(v) else float(v) for v in series.values[:until]]
    for done, group in enumerate(by_memory.values()):
        _feed(series, values, group, lambda share, done=done: note((done + share) / len(by_memory)))  # type: ignore[misc]
    back = [order.index(step) for step in steps]
    for speaker in speakers:
        speaker.said.values = speaker.said.values[:, back]
    return tuple(speaker.said for speaker in speakers)


def _feed(
    series: BacktestSeries, values: Sequence[float | None], group: Sequence[_Speaker], note: Callable[[float], None]
) -> None:
    """Feed one memory from the first bucket to the last, and ask its models at their origins."""
    keeper = group[0].asked.model
    update, state, minutes = keeper.update, keeper.start(), range(series.bucket_min)
    for origin, value in enumerate(values):
        at_s = series.start_s + origin * series.step_s
        for minute in minutes:
            state = update(state, at_s + minute * MINUTE_S, value)
        for speaker in group:
            speaker.ask(state, origin)
        if origin % NOTE_EVERY == 0:
            note(origin / len(values))
    for speaker in group:
        speaker.read(speaker.reader)
