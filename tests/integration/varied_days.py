"""Seeds → what each varied day of the recurring incident left unserved in every world, as JSON on stdout.

    python tests/integration/varied_days.py 1 2 3

Two processes; no report and no ledger is written. tests/integration/test_demo_varied_days.py runs it and judges.
"""

import json
import multiprocessing
import sys

from leadtime.cli.simulated_policy import simulated_policy
from leadtime.scorecard.measures import score
from leadtime.scorecard.run import WorldRun
from leadtime.simulate import worlds
from leadtime.simulate.demo import demo
from leadtime.simulate.incident import Form
from leadtime.testing.fakes import ListSink

KEY = "serving/chat"


def _silent(_what: str, _share: float) -> None:
    """Nobody watches."""


def play(seed: int) -> dict[str, object]:
    """One day: the worlds of the report but for the oracle and the early clock."""
    made = demo(Form.RECURRING, seed=seed, vary=True, policy=simulated_policy(None))
    prepared = worlds.prepare(made.replay, _silent)
    hpa = worlds.run_hpa(prepared)
    ours = worlds.run_leadtime(prepared, ListSink(), _silent).run
    aim = worlds.pod_hours(ours)
    runs: dict[str, WorldRun] = {"hpa": hpa, "leadtime": ours}
    runs["hpa_equal_cost"] = worlds.run_equal_cost(prepared, hpa, aim).run
    by_clock = worlds.run_cron(prepared, hpa, aim)
    assert by_clock is not None
    runs["cron"] = by_clock.run
    scores = {world: score(run, KEY) for world, run in runs.items()}
    return {
        "seed": seed,
        "variation": made.telling.extra["variation"],
        "unserved": {world: scored.unserved_requests for world, scored in scores.items()},
        "peak": {world: scored.unserved_ratio_peak for world, scored in scores.items()},
        "pod_hours": {world: scored.pod_hours for world, scored in scores.items()},
        "gpu_node_hours": {world: scored.gpu_node_hours for world, scored in scores.items()},
        "reversals": {world: scored.reversals for world, scored in scores.items()},
        "max_pods_added_per_minute": scores["leadtime"].max_pods_added_per_minute,
    }


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(json.dumps(pool.map(play, [int(seed) for seed in sys.argv[1:]], chunksize=1)))
