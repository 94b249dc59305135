"""One form of the incident → the replay that plays it, and how its report is told."""

from dataclasses import dataclass

from leadtime.policy.schema import Policy
from leadtime.simulate import incident
from leadtime.simulate.incident import DAY_S, SCORED_DAY_S, Form
from leadtime.simulate.publish import Telling
from leadtime.simulate.scenario import load
from leadtime.simulate.worlds import Replay

SURGE_OVER_S = 9 * 3600  # warm pods are judged until 09:00; the surge and what follows it are over by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A replay and its telling."""

    replay: Replay
    telling: Telling


def demo(form: Form, *, seed: int, vary: bool, policy: Policy, warm_pods: int = 0) -> Demo:
    """The incident in one form: seven days before it, then the day itself from midnight to midnight, UTC."""
    scenario = load("incident")
    work = scenario.workloads[0]
    day = incident.draw_day(form, seed=seed, vary=vary)
    trace = incident.incident_demand(
        day, seed=seed, min_replicas=work.min_replicas, capacity_per_pod_rps=work.capacity_per_pod_rps
    )
    surge_start_s = None if day.scored is None else SCORED_DAY_S + day.scored.onset_s
    return Demo(
        replay=Replay(
            scenario=scenario,
            demand={work.key: trace},
            seed=seed,
            policy=policy,
            scored_from_s=SCORED_DAY_S,
            end_s=SCORED_DAY_S + DAY_S,
            warm_pods=warm_pods,
        ),
        telling=Telling(
            kind="demo",
            title=form.value,
            surge_start_s=surge_start_s,
            size_warm_until_s=SCORED_DAY_S + SURGE_OVER_S if form is Form.SUDDEN else None,
            extra={"form": form.value, "variation": day.variation, "warm_pods_installed": warm_pods},
        ),
    )
