"""Forecasts issued and the demand that came → calibrated bounds and a loss for every model at a few horizons.

Every ten minutes each model is asked for its path; when a horizon has passed, the actual minute is compared. Bounds
are calibrated online: the quantiles of a model's own recent misses (in units of the level of demand, so that they hold
by day and by night), at a miss rate that is moved up or down until the stated share is met. Sources: conformalised
quantiles (Romano et al. 2019), adaptive conformal inference (Gibbs and Candès 2021).
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leadtime.forecast.model import Band, FloatColumn, TooShort

HORIZONS_MIN = (10, 30, 60, 90)
_AT_HORIZONS = np.array(HORIZONS_MIN)
ISSUE_EVERY_MIN = 10
ISSUE_AT_MIN = 2  # two minutes after a cell closed: neither the best nor the worst moment for a model of cells
PATH_MIN = HORIZONS_MIN[-1] + 1
RING = 288  # two days of misses
BLOCK_S = 21_600  # losses are summed in blocks of six hours: errors within one are not independent
CALIBRATE_EVERY = 6  # issues, that is hourly
FEWEST_MISSES = 24
UNSURE_RATIO = 0.10  # share of the level either side, until enough misses were seen
ADAPT_RATE = 0.005  # Gibbs and Candès use 0.005; a miss moves the miss rate by half a per cent
LOWER, UPPER = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Issued:
    """What was said at minute ``at_min`` (epoch minutes): for every model and horizon."""

    at_min: int
    level: float
    said: FloatColumn  # (4, models, horizons): raw lower, raw upper, calibrated lower, calibrated upper


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Sums over the forecasts scored within [number·BLOCK_S, +BLOCK_S): (model, horizon) arrays."""

    number: int
    loss: FloatColumn  # pinball loss of the upper bound, in demand units
    inside: FloatColumn
    count: FloatColumn
    actual: float
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Race:
    """Everything known about how the models did. Bounded: one ring, the blocks of the score window, 9 issues."""

    misses: FloatColumn  # (2, models, horizons, RING): how far beyond the raw bound, in levels; NaN unknown
    written: int
    rate: FloatColumn  # (2, models, horizons): the miss rate aimed at, adapted
    shift: FloatColumn  # (2, models, horizons): what is added beyond the raw bound, in levels
    issued: tuple[Issued, ...]
    blocks: tuple[Block, ...]


def start(models: int, level_ratio: float) -> Race:
    """Before the first forecast."""
    shape = (2, models, len(HORIZONS_MIN))
    return Race(
        misses=np.full((*shape, RING), np.nan),
        written=0,
        rate=np.full(shape, (1.0 - level_ratio) / 2.0),
        shift=np.full(shape, UNSURE_RATIO),
        issued=(),
        blocks=(),
    )


def is_issue_minute(at_min: int) -> bool:
    """True at the minutes in which forecasts are issued to be scored."""
    return at_min % ISSUE_EVERY_MIN == ISSUE_AT_MIN


def begins_block(at_min: int) -> bool:
    """True at the first issue of a block: the one before is complete."""
    return at_min * 60 % BLOCK_S < ISSUE_EVERY_MIN * 60


def issue(race: Race, at_min: int, level: float, bands: tuple[Band | TooShort, ...]) -> Race:
    """Keep what every model says at ``at_min``, the minute that begins now; a refusal is NaN."""
    said = np.full((4, *race.shift.shape[1:]), np.nan)
    for m, band in enumerate(bands):
        if isinstance(band, Band):
            said[LOWER, m] = band.lower[_AT_HORIZONS]
            said[UPPER, m] = band.upper[_AT_HORIZONS]
    said[2 + LOWER] = np.maximum(0.0, said[LOWER] - race.shift[LOWER] * level)
    said[2 + UPPER] = np.maximum(0.0, said[UPPER] + race.shift[UPPER] * level)
    issued = Issued(at_min=at_min, level=level, said=said)
    oldest = at_min - HORIZONS_MIN[-1]
    return replace(race, issued=(*(i for i in race.issued if i.at_min >= oldest), issued))


def score(race: Race, at_min: int, actual: float | None, level_ratio: float, window_s: int) -> Race:
    """Compare the minute ``at_min``, whose demand is now known, with what was said about it at each horizon.

    A gap scores nothing: what was said about it is dropped unjudged.
    """
    if actual is None:
        return race
    due = {at_min - i.at_min: i for i in race.issued}
    both = np.full((4, *race.shift.shape[1:]), np.nan)
    levels = np.ones(len(HORIZONS_MIN))
    for h, minutes in enumerate(HORIZONS_MIN):
        if issued := due.get(minutes):
            both[:, :, h], levels[h] = issued.said[:, :, h], issued.level
    if np.isnan(both[LOWER]).all():
        return race
    bounds = both[2:]
    misses = race.misses.copy()
    misses[LOWER, ..., race.written % RING] = (both[LOWER] - actual) / levels
    misses[UPPER, ..., race.written % RING] = (actual - both[UPPER]) / levels
    outside = np.stack((actual < bounds[LOWER], actual > bounds[UPPER]))
    known = ~np.isnan(bounds)
    aim = (1.0 - level_ratio) / 2.0
    rate = np.clip(race.rate + np.where(known, ADAPT_RATE * (aim - outside), 0.0), aim / 10.0, 0.5)
    written = race.written + 1
    shift = _shift(misses, rate) if written % CALIBRATE_EVERY == 0 else race.shift
    race = Race(misses=misses, written=written, rate=rate, shift=shift, issued=race.issued, blocks=race.blocks)
    scored = _Scored(actual=actual, upper=bounds[UPPER], inside=known[UPPER] & ~(outside[LOWER] | outside[UPPER]))
    return _add_loss(race, at_min, scored, 1.0 - aim, window_s)


def _shift(misses: FloatColumn, rate: FloatColumn) -> FloatColumn:
    """The (1 − rate) quantile of each row of misses, rounded outwards; ``UNSURE_RATIO`` while few are known."""
    ordered = np.sort(misses, axis=-1)
    count = RING - np.isnan(misses).sum(axis=-1)
    index = np.clip(np.ceil((count + 1) * (1.0 - rate)) - 1, 0, np.maximum(count - 1, 0)).astype(np.intp)
    quantile = np.take_along_axis(ordered, index[..., None], axis=-1)[..., 0]
    return np.where(count >= FEWEST_MISSES, quantile, UNSURE_RATIO)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """One minute's demand beside every calibrated upper bound said for it (NaN: nothing said)."""

    actual: float
    upper: FloatColumn
    inside: npt.NDArray[np.bool_]


def _add_loss(race: Race, at_min: int, scored: _Scored, tau: float, window_s: int) -> Race:
    """Book the pinball loss of every upper bound in the block of ``at_min``; forget blocks before the window."""
    number = at_min * 60 // BLOCK_S
    off = scored.actual - scored.upper
    known = ~np.isnan(off)
    loss = np.where(known, np.maximum(tau * off, (tau - 1.0) * off), 0.0)
    last = race.blocks[-1] if race.blocks and race.blocks[-1].number == number else None
    zero = np.zeros(loss.shape)
    block = Block(
        number=number,
        loss=loss + (last.loss if last else zero),
        inside=scored.inside + (last.inside if last else zero),
        count=known + (last.count if last else zero),
        actual=scored.actual + (last.actual if last else 0.0),
        minutes=1 + (last.minutes if last else 0),
    )
    oldest = number - window_s // BLOCK_S
    return replace(race, blocks=(*(b for b in race.blocks if oldest < b.number < number), block))
