"""What ``leadtime replay`` does: demand file + scenario + policy → a replay → three files in ``--out``."""

import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from leadtime.cli import console
from leadtime.cli.borg.extras import need
from leadtime.cli.options import ReplayOptions, plain_duration
from leadtime.cli.output import OutputFolder
from leadtime.cli.simulated_policy import simulated_policy
from leadtime.domain.errors import BadScenario, WrongUse
from leadtime.domain.risk import RiskScorer
from leadtime.domain.time_window import rfc3339
from leadtime.policy.schema import Policy
from leadtime.simulate.demand_trace import DemandTrace
from leadtime.simulate.oracle import needed_pods
from leadtime.simulate.publish import Telling, publish
from leadtime.simulate.report import encode_report
from leadtime.simulate.scenario import Scenario, load
from leadtime.simulate.worlds import Replay
from leadtime.sources.demand_file import DemandFile, read_demand

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
INITIAL_S = 300  # of demand that the pods standing at the start are sized by


def run(options: ReplayOptions) -> None:
    """Play the file beside HPA alone and the oracle, and write the report."""
    policy = simulated_policy(options.policy_path)
    scenario = _scenario(options)
    scorer = _scorer(options, scenario)
    file = read_demand(options.demand, options.file)
    replay = replace(_replay(options, policy, scenario, file), risk=scorer)
    telling = Telling(kind="replay", title=scenario.name, extra={"demand": _about(file)})
    out = console.stderr()
    with OutputFolder(options.out) as staged, console.progress_bars(out) as bars:
        report = publish(replay, telling, staged, console.Bar(bars, options.demand.name).note)
    if options.json:
        sys.stdout.write(encode_report(report))
    console.show_report(out, options.demand.name, report)
    console.show_written(out, options.out)


def _scorer(options: ReplayOptions, scenario: Scenario) -> RiskScorer | None:
    """The model of ``--risk-model``, checked against its card; it can only be judged where pods fail."""
    folder, doing = options.risk_model, f"replaying {options.demand} with a failure model"
    if folder is None:
        return None
    if scenario.failures is None:
        raise WrongUse(
            "risk-model-without-failures", doing, f"no pod ever fails in scenario {options.scenario}",
            "give a scenario with failures, such as gpu-failures",
        )  # fmt: skip
    need(doing, "polars", "onnxruntime")
    from leadtime.risk.live import LiveScorer
    from leadtime.sources.risk_model import load_risk_model

    return LiveScorer(load_risk_model(folder))


def _scenario(options: ReplayOptions) -> Scenario:
    scenario = load(options.scenario).with_capacity(options.capacity_per_pod_rps)
    if len(scenario.workloads) != 1:
        raise BadScenario(
            "scenario-not-one-workload", f"replaying {options.demand} in scenario {options.scenario}",
            f"the scenario has {len(scenario.workloads)} workloads and the file is the demand of one",
            "give a scenario with one workload",
        )  # fmt: skip
    return scenario


def _replay(options: ReplayOptions, policy: Policy, scenario: Scenario, file: DemandFile) -> Replay:
    trace = on_grid(file, scenario.step_s)
    scenario = _standing(scenario, trace)
    tick_s = policy.loop.tick_s
    scored_from_s = trace.start_s + int(options.warm_up.total_seconds()) // tick_s * tick_s
    end_s = trace.start_s + (trace.end_s - trace.start_s) // tick_s * tick_s
    if scored_from_s + tick_s > end_s:
        raise WrongUse(
            "demand-shorter-than-warm-up", f"replaying {options.demand}",
            f"it covers {plain_duration(end_s - trace.start_s)} and the warm-up takes "
            f"{plain_duration(options.warm_up.total_seconds())}",
            f"shorten it, for example --warm-up {_shorter(end_s - trace.start_s)}, or give a longer series",
        )  # fmt: skip
    return Replay(
        scenario=scenario,
        demand={scenario.workloads[0].key: trace},
        seed=options.seed,
        policy=policy,
        scored_from_s=scored_from_s,
        end_s=end_s,
        kill_at_s=_kill_at_s(options, scored_from_s, end_s),
    )


def _shorter(covered_s: int) -> str:
    """A warm-up that leaves something to score: a third of the file, in the largest whole unit."""
    third_s = covered_s // 3
    unit_s = next((unit for unit in (DAY_S, HOUR_S, MINUTE_S) if third_s >= unit), 1)
    return plain_duration(third_s // unit_s * unit_s)


def _standing(scenario: Scenario, trace: DemandTrace) -> Scenario:
    """The cluster begins with the pods its first demand needs: it did not start with the recording."""
    work = scenario.workloads[0]
    if work.initial_replicas is not None:
        return scenario
    first = needed_pods(
        trace.rps[: INITIAL_S // trace.step_s],
        capacity_per_pod_rps=work.capacity_per_pod_rps,
        target_ratio=work.hpa.target_ratio,
        min_replicas=work.min_replicas,
        max_replicas=work.max_replicas,
    )
    begun = work.model_copy(update={"initial_replicas": int(first.max())})
    return scenario.model_copy(update={"workloads": (begun,)})


def _kill_at_s(options: ReplayOptions, scored_from_s: int, end_s: int) -> int | None:
    at: datetime | None = options.kill_at
    if at is None:
        return None
    at_s = int(at.timestamp())
    if at_s >= end_s:
        raise WrongUse(
            "kill-outside-span", f"replaying {options.demand}", f"--kill-at {rfc3339(at)} lies after the last tick",
            "name an instant within the scored span",
        )  # fmt: skip
    return max(at_s, scored_from_s)


def on_grid(file: DemandFile, step_s: int) -> DemandTrace:
    """The file's buckets held constant over steps of ``step_s``, on whole minutes; finer files are averaged first.

    Steps before the first whole minute and after the last one are dropped, never guessed.
    """
    start_s, bucket_s = file.start.timestamp(), file.step_s
    values = np.asarray(file.values, dtype=np.float64)
    first_s = int(-(-start_s // MINUTE_S) * MINUTE_S)
    last_s = int((start_s + bucket_s * len(values)) // MINUTE_S * MINUTE_S)
    if last_s <= first_s:
        raise WrongUse(
            "demand-too-short", f"reading {Path(file.path).name}", "it covers less than one whole minute",
            "give a longer series",
        )  # fmt: skip
    if bucket_s < step_s:
        begins_s = start_s + bucket_s * np.arange(len(values))
        rps = _averaged(values, (begins_s - first_s) // step_s, (last_s - first_s) // step_s)
    else:
        at_s = np.arange(first_s, last_s, step_s)
        rps = values[((at_s - start_s) // bucket_s).astype(np.int64)]
    return DemandTrace(start_s=first_s, step_s=step_s, rps=rps)


def _averaged(values: np.ndarray, step_of: np.ndarray, steps: int) -> np.ndarray:
    """Mean of the buckets that begin within each step (``step_of``); a step with a missing bucket is missing."""
    keep = (step_of >= 0) & (step_of < steps)
    index = step_of[keep].astype(np.int64)
    sums = np.bincount(index, weights=values[keep], minlength=steps)
    counts = np.bincount(index, minlength=steps)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _about(file: DemandFile) -> dict[str, object]:
    """What the report says of the file: nothing that is missing stays unsaid."""
    return {
        "file": Path(file.path).name,
        "first_at": rfc3339(file.first_at),
        "last_at": rfc3339(file.last_at),
        "step_s": file.step_s,
        "rows_read": file.rows_read,
        "rows_filtered": file.rows_filtered,
        "missing_values": file.missing_values,
        "gaps": file.gaps,
        "duplicates_merged": file.duplicates_merged,
    }
