"""Hidden ends of runs → labels, exclusions and Bayes scores of every window: docs/designs/0015, truth_rows.

The rules of the contract (0013): p is the window's end; a row whose run has ended is not running; one whose horizon
goes beyond the end of observation is censored; one whose run's end is LOST within the horizon is lost; else y = 1
exactly where the run's end is a failure in (p, p + H].
"""

import numpy as np
import polars as pl

from leadtime.domain.borg import HORIZONS_MIN, MINUTE_US, EventType, Excluded
from leadtime.simulate.borg.cohort import Cohort
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.borg.plan import Bools, Ints, Plan

REASONS = tuple(Excluded)
LABELLED = len(REASONS)  # the code of a row that is not excluded


def reasons(knobs: Knobs, cohort: Cohort, horizon_min: int) -> Ints:
    """Index into REASONS, or LABELLED, for every window."""
    w, runs = cohort.windows, cohort.lived.runs
    until = w.end_us + horizon_min * MINUTE_US
    lost = (runs["end_type"][w.run] == int(EventType.LOST)) & (runs["end_us"][w.run] <= until)
    return np.select([w.step < 0, until > knobs.observed_until_us, lost], [0, 1, 2], LABELLED)


def failing(cohort: Cohort, horizon_min: int) -> Bools:
    """Whether the run fails in (p, p + H], for every window of a run that is alive at p."""
    w, runs = cohort.windows, cohort.lived.runs
    end = runs["end_us"][w.run]
    failed = runs["end_type"][w.run] == int(EventType.FAIL)
    return np.asarray(failed & (end > w.end_us) & (end <= w.end_us + horizon_min * MINUTE_US), np.bool_)


def truth_frame(knobs: Knobs, plan: Plan, cohort: Cohort) -> pl.DataFrame:
    """One row a window in the order (collection_id, instance_index, end, start)."""
    w = cohort.windows
    columns: dict[str, pl.Series] = {
        "cell": pl.repeat(knobs.cell, len(w.slot), dtype=pl.String, eager=True),
        "collection_id": pl.Series(plan.id[cohort.collection(w.slot)]),
        "instance_index": pl.Series(cohort.slots.instance[w.slot].astype(np.int32)),
        "start_time_us": pl.Series(w.start_us),
        "end_time_us": pl.Series(w.end_us),
    }
    names = pl.Series([str(reason) for reason in REASONS] + [None], dtype=pl.String)
    for place, horizon in enumerate(HORIZONS_MIN):
        why = reasons(knobs, cohort, horizon)
        frame = pl.DataFrame(
            {"in": why == LABELLED, "y": failing(cohort, horizon).astype(np.int8), "score": w.score[:, place]}
        )
        kept = frame.select(pl.when("in").then("y").alias("y"), pl.when("in").then("score").alias("score"))
        columns[f"excluded_{horizon}"] = names.gather(pl.Series(why.astype(np.uint32)))
        columns[f"y_{horizon}"] = kept["y"]
        columns[f"score_{horizon}"] = kept["score"]
    return pl.DataFrame(columns)
