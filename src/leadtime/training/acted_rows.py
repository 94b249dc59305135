"""Truth files → what is known of rows on which something already acted (trap T15), told in every report.

An action hides the failure it prevented, and no event shows it: only the generator can say that it happened.
"""

from collections.abc import Sequence
from pathlib import Path

from leadtime.risk.gates import Gate, not_examined, reported
from leadtime.training.manifest import read_json

NAME = "acted-on-rows"
TRUTH = "truth.json"


def acted_on(truth: Sequence[Path]) -> Gate:
    """``acted-on-rows``: the share of foreseen failures that were prevented, the worst trace's; told, never failed.

    ``truth``: truth_rows.parquet files; the generator's truth.json is looked for beside each. Not examined where there
    is none. Raises BadTrace for a truth.json that is no JSON.
    """
    told = [found for path in truth if (found := read_json(path.with_name(TRUTH))) is not None]
    if not told:
        return not_examined(NAME, "events do not show which failures an action prevented; leave some pods alone")
    most = max(float((one.get("knobs") or {}).get("prevented", 0.0)) for one in told)
    exact = all(one.get("score_is_exact", True) for one in told)
    doubt = "" if exact else "; best possible scores are not exact: a controller acted, or the trace drifts"
    sentence = f"share of foreseen failures that a controller prevented, so that their labels say no{doubt}"
    return reported(NAME, most, sentence=sentence)
