"""The histories of all workloads of a cluster → one learned demand model for them all, published: the weekly retrain.

One model, because rows are relative: what a burst or a morning looks like is learned from every workload that has one,
and a workload of two days is served from its first hour on. Origins are shared out so that the number of rows, and
with it time and memory, is bounded however many workloads there are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leadtime.domain.errors import BadTrace
from leadtime.training.backtest.trainee import MinuteHistory
from leadtime.training.demand import publish, quantiles
from leadtime.training.demand import samples as rows_of
from leadtime.training.demand.parity import Parity
from leadtime.training.demand.quantiles import QuantileBoosters
from leadtime.training.demand.samples import Samples
from leadtime.training.demand.settings import Settings
from leadtime.training.demand.trainee import MOST_ORIGINS, NEEDED_S, known_s

MOST_FLEET_ORIGINS = 60_000
PARITY_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """One model for ``workloads``; ``left_out`` are those with less than a day of known minutes, by name."""

    reader: QuantileBoosters
    samples: Samples
    workloads: tuple[str, ...]
    left_out: tuple[str, ...]


def fit_fleet(
    histories: Mapping[str, MinuteHistory], *, zone: str = "UTC", settings: Settings | None = None, seed: int = 0,
    threads: int = 1, budget_s: float = 300.0, note: Callable[[float], None] = lambda _share: None,
) -> Fleet:  # fmt: skip
    """Fit one model to ``histories`` (name → minutes). The order of names does not matter.

    ``budget_s``: of growing the trees. Raises BadTrace when no history is long enough; ``note`` may raise to stop.
    """
    names = sorted(histories)
    used = [name for name in names if known_s(histories[name]) >= NEEDED_S]
    if not used:
        longest_s = max((known_s(history) for history in histories.values()), default=0)
        raise BadTrace(
            "demand-history-too-short", "fitting the demand model",
            f"the longest of {len(names)} histories has {longest_s / 3600:.1f} h of known minutes",
            f"bring one of at least {NEEDED_S // 3600} h",
        )  # fmt: skip
    each = min(MOST_ORIGINS, max(1, MOST_FLEET_ORIGINS // len(used)))
    parts = []
    for i, name in enumerate(used):
        history = histories[name]
        parts.append(
            rows_of.samples(
                history.start_s, history.values, zone=zone, most_origins=each, seed=seed,
                note=lambda share, i=i: note((i + share) / len(used) / 2.0),  # type: ignore[misc]
            )
        )  # fmt: skip
    samples = Samples.together(parts)
    reader = quantiles.fit(
        samples, settings or Settings(), seed=seed, threads=threads, budget_s=budget_s,
        note=lambda share: note(0.5 + share / 2.0),
    )  # fmt: skip
    left_out = tuple(name for name in names if name not in used)
    return Fleet(reader=reader, samples=samples, workloads=tuple(used), left_out=left_out)


def publish_fleet(folder: Path, fleet: Fleet, *, zone: str) -> Parity:
    """Write ``fleet`` as a folder the controller can load; see ``publish.publish``."""
    samples = fleet.samples
    taken = np.linspace(0, len(samples.x) - 1, min(PARITY_ROWS, len(samples.x))).astype(np.intp)
    card = {
        "name": "lag_trees", "zone": zone, "workloads": list(fleet.workloads), "left_out": list(fleet.left_out),
        "rows": len(samples.x), "from_s": int(samples.at_s.min()), "to_s": int(samples.at_s.max()) + 60,
        "trees": [booster.num_boosted_rounds() for booster in fleet.reader.boosters],
    }  # fmt: skip
    return publish.publish(folder, fleet.reader, card, samples.x[taken])
