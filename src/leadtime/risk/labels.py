"""Windows → y_<m> and excluded_<m> by the label contract (docs/designs/0013): does the next end fail within m minutes?

Prediction instant p = end_time_us; with a delay d the alert stands at p + d. The next terminal event decides: a
competing end makes the row negative, LOST and what lies beyond the observation make it unknown.
"""

from collections.abc import Sequence

import polars as pl

from leadtime.domain.borg import MINUTE_US, TERMINAL, EventType, Excluded

DEFAULT_FAILURES = frozenset({EventType.FAIL})
REASONS = tuple(reason.value for reason in Excluded)


def labels(
    windows: pl.LazyFrame,
    *,
    horizons_min: Sequence[int],
    failure_types: frozenset[EventType] = DEFAULT_FAILURES,
    observed_until_us: int,
    delay_us: int = 0,
) -> pl.LazyFrame:
    """Windows [n] → the same rows with ``y_<m>`` (Int8; null where excluded) and ``excluded_<m>`` (String or null).

    y = 1 iff the next terminal event's type is one of ``failure_types`` and its time lies in (p + d, p + d + m min].
    Excluded, first reason that holds: ``not_running`` (no run is open at p + d, as far as the record shows: an instance
    without a SCHEDULE up to p counts as not running), ``censored`` (p + d + m min > ``observed_until_us``, whatever was
    seen), ``lost`` (the next terminal event is LOST and lies in the interval). Raises ValueError for failure types
    that end no run or whose outcome is not known (LOST), for horizons below 1 min, and for a delay below 0.
    """
    if not failure_types or not failure_types <= TERMINAL - {EventType.LOST}:
        raise ValueError(f"failure types must be ends with a known outcome, not {sorted(failure_types)}")
    if delay_us < 0 or any(minutes < 1 for minutes in horizons_min):
        raise ValueError("horizons are at least 1 min and the delay is at least 0 µs")
    coded = windows.with_columns(
        _excluded(minutes, observed_until_us, delay_us).alias(f"_why_{minutes}") for minutes in horizons_min
    )
    reasons = pl.lit(pl.Series(REASONS))  # picked by code: strings built by when-then cost three times as much
    return coded.with_columns(
        *(reasons.gather(pl.col(f"_why_{minutes}")).alias(f"excluded_{minutes}") for minutes in horizons_min),
        *(
            pl.when(pl.col(f"_why_{minutes}").is_null())
            .then(_ends_within(minutes, delay_us, failure_types).cast(pl.Int8))
            .alias(f"y_{minutes}")
            for minutes in horizons_min
        ),
    ).drop(f"_why_{minutes}" for minutes in horizons_min)


def _ends_within(minutes: int, delay_us: int, types: frozenset[EventType]) -> pl.Expr:
    """The next terminal event is one of ``types`` and comes no later than p + d + H; false where there is none."""
    last_us = pl.col("end_time_us") + (delay_us + minutes * MINUTE_US)
    type_matches = pl.col("next_terminal_type").is_in(sorted(int(event) for event in types))
    return (type_matches & (pl.col("next_terminal_time_us") <= last_us)).fill_null(value=False)


def _excluded(minutes: int, observed_until_us: int, delay_us: int) -> pl.Expr:
    """Place in REASONS, UInt8, of the first reason that holds; null where none does."""
    alert_us = pl.col("end_time_us") + delay_us
    over = (pl.col("next_terminal_time_us") <= alert_us).fill_null(value=False)
    lost = _ends_within(minutes, delay_us, frozenset({EventType.LOST}))
    return (
        pl.when(~pl.col("is_running") | over)
        .then(_code(Excluded.NOT_RUNNING))
        .when(alert_us + minutes * MINUTE_US > observed_until_us)
        .then(_code(Excluded.CENSORED))
        .when(lost)
        .then(_code(Excluded.LOST))
        .otherwise(None)
    )


def _code(reason: Excluded) -> pl.Expr:
    return pl.lit(REASONS.index(reason.value), pl.UInt8)
