"""The one schema of thresholds → a validated, frozen Policy. No file is read here (see policy/files.py).

Each field carries its unit and the reason for its default in ``json_schema_extra``; names end in their unit. Rules
that span fields are CEL expressions in policy/rules.py, so that the same rule can be generated elsewhere.
"""

import hashlib
import json
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


def threshold(default: Any, unit: str, why: str, **bounds: Any) -> Any:
    """A policy field: default, unit, the reason for the default, and pydantic bounds (ge, le, gt, lt)."""
    return Field(default=default, description=why, json_schema_extra={"unit": unit}, **bounds)


class Section(BaseModel):
    """Frozen, and a misspelt field is an error: a threshold that is silently ignored is worse than none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Stage(StrEnum):
    """The actuation ladder. Each step includes those before it."""

    OFF = "off"
    SHADOW = "shadow"
    CAPACITY_BUFFER = "capacity_buffer"
    HPA_FLOOR = "hpa_floor"


class LoopPolicy(Section):
    """The tick."""

    tick_s: int = threshold(
        60, "s", "Story C's controller ticks every minute; demand series are minute series.", ge=5, le=600
    )
    history_s: int = threshold(
        3600,
        "s",
        "One hour shows the level and its noise; season comes from the model's own state.",
        ge=600,
        le=86400,
    )
    stale_after_s: int = threshold(90, "s", "A tick and a half: one missed scrape is not an outage.", ge=15, le=900)


class ActuationPolicy(Section):
    """What leadtime may write, and how it is taken back."""

    stage: Stage = threshold(Stage.SHADOW, "", "Shadow is the default: trust is measured before it is used.")
    kill_switch: bool = threshold(False, "", "When true nothing is written and everything written is released.")
    floor_expiry_s: int = threshold(
        900,
        "s",
        "A floor outlives 15 missed ticks, then lapses to the owner's value by itself.",
        ge=120,
        le=3600,
    )
    buffer_expiry_s: int = threshold(900, "s", "As for floors.", ge=120, le=7200)
    floor_release: Literal["at_once", "stepwise"] = threshold(
        "at_once", "", "At once, the youngest pods go together and whole nodes fall empty; stepwise spares warm pools."
    )  # fmt: skip
    release_step_ratio: float = threshold(
        0.10, "share of the floor per tick", "Stepwise release takes ten ticks.", gt=0, le=1
    )


class ScalingPolicy(Section):
    """From demand to pods."""

    target_utilisation_ratio: float = threshold(
        0.70,
        "share of a pod's capacity",
        "Story C aims at 70 %, not 100 %: 43 % of head room absorbs what the forecast missed.",
        ge=0.05,
        le=0.95,
    )
    normal_pods_added_per_min: int = threshold(
        10,
        "pods/min",
        "Half of the surge rate: scheduler, registry and etcd see a steady trickle.",
        ge=1,
        le=1000,
    )
    surge_pods_added_per_min: int = threshold(
        20,
        "pods/min",
        "Story C: at most 20 pods a minute, or image pulls and init containers storm.",
        ge=1,
        le=1000,
    )
    replica_cap: int = threshold(
        2000,
        "pods",
        "An absolute lid above every HPA's maxReplicas, against a runaway forecast.",
        ge=1,
        le=100_000,
    )
    max_extra_pod_hours_ratio: float = threshold(
        0.12,
        "share of the HPA's own pod-hours",
        "The most leadtime may spend on top of what the HPA alone would run, over the window.",
        ge=0,
        le=5,
    )
    min_minutes_saved_per_percent: float = threshold(
        1.0,
        "minutes of shortfall a day for each 1 % more pod-hours",
        "The price of acting: a plan that costs 5 % more must spare users five minutes a day, else it does not pay.",
        ge=0,
        le=1440,
    )
    budget_window_s: int = threshold(86_400, "s", "A day holds the whole daily pattern.", ge=3600, le=2_678_400)
    floor_hold_s: int = threshold(
        900,
        "s",
        "A floor outlives its need by this: longer than the HPA's 300 s window, so the two do not see-saw.",
        ge=0,
        le=7200,
    )
    floor_tolerance_ratio: float = threshold(
        0.02, "share of the floor", "Smaller moves are noise and cost a write each.", ge=0, le=0.5
    )
    warm_hold_s: int = threshold(
        1800, "s", "Story E keeps workers 30 minutes after the last traffic drop.", ge=0, le=86_400
    )
    pool_headroom_nodes: int = threshold(0, "nodes", "Spare nodes above the plan.", ge=0, le=1000)
    max_buffer_pods: int = threshold(
        2000, "pods", "A buffer larger than this is a mistake, not a plan.", ge=0, le=100_000
    )


class ForecastPolicy(Section):
    """When a model may act."""

    level_ratio: float = threshold(
        0.90, "share of actuals inside the interval", "Nine of ten; checked online.", ge=0.5, le=0.99
    )
    min_history_s: int = threshold(
        172_800,
        "s",
        "Two days: a season must have been seen twice before it is believed.",
        ge=0,
        le=2_678_400,
    )
    max_history_days: int = threshold(28, "days", "Older days are forgotten.", ge=1, le=120)
    season_tolerance_s: int = threshold(
        900,
        "s",
        "Recurring load comes around the same time, not at the same second: a quarter of an hour either way.",
        ge=0,
        le=7200,
    )
    min_scored: int = threshold(
        300, "forecasts", "Five hours of minutes before a model's score counts.", ge=10, le=10_080
    )
    better_than_last_value_ratio: float = threshold(
        0.0,
        "share of last value's loss",
        "A model must lose less than last value by at least this share.",
        ge=0,
        le=0.5,
    )
    score_window_s: int = threshold(604_800, "s", "A week of errors decides.", ge=3600, le=2_678_400)
    time_zone: str = threshold(
        "UTC", "IANA name", "Days are compared by the users' local time, which clock changes shift against UTC."
    )


class SurgePolicy(Section):
    """The detector beside the model."""

    deviations: float = threshold(
        4.0,
        "robust standard deviations",
        "About one false crossing a month on minute data if residuals were normal.",
        ge=2,
        le=20,
    )
    min_excess_ratio: float = threshold(
        0.05, "share of the forecast", "Less than this is well within what the 70 % target leaves free.", ge=0.01, le=2
    )
    settle_minutes: int = threshold(
        300, "minutes", "Five hours of minutes until the noise of a series is known; before that nothing is a surge.",
        ge=0, le=10_080,
    )  # fmt: skip
    persistence_ticks: int = threshold(2, "ticks", "One spike is a scrape artefact; two in a row rise.", ge=1, le=30)
    clear_ticks: int = threshold(10, "ticks", "The surge ends after ten quiet ticks.", ge=1, le=240)
    extrapolate_s: int = threshold(
        900,
        "s",
        "A rise is carried on for at most a quarter of an hour: beyond that nothing is known.",
        ge=60,
        le=7200,
    )
    max_extrapolation_ratio: float = threshold(
        1.0, "share of the demand now", "A carried-on rise at most doubles demand: a jump is not a ramp.", ge=0, le=10
    )
    min_level_ratio: float = threshold(
        0.25, "share of the last day's mean", "Ten requests at night may become thirty; nobody waits.", ge=0, le=5
    )


class QueuePolicy(Section):
    """The queue rule: exact, as DESIGN §4 and the referee use it."""

    growth_window_s: int = threshold(300, "s", "Pending grew over five minutes.", ge=60, le=3600)
    oldest_pending_s: float = threshold(
        300.0, "s", "Waiting five minutes without any capacity ordered for it is ill health.", ge=30, le=7200
    )
    clean_ticks_to_clear: int = threshold(
        2, "ticks", "Two clean ticks, so that one good reading does not end the alarm.", ge=1, le=60
    )


class MissingDataPolicy(Section):
    """Missing is not zero: hold or raise, never lower, and no hold is for ever."""

    hold_max_s: int = threshold(
        1800, "s", "At most 30 minutes, then the floor lapses to what the owner set, loudly.", ge=60, le=7200
    )


class LeadTimePolicy(Section):
    """Learning the lead; the priors stand until enough was seen."""

    quantile_ratio: float = threshold(0.90, "quantile", "Nine of ten nodes arrive in time.", ge=0.5, le=0.99)
    min_episodes: int = threshold(
        3,
        "independent scale-ups",
        "Fewer say nothing about the tail; the prior is used beside them.",
        ge=1,
        le=50,
    )
    prior_node_p50_s: float = threshold(
        600.0, "s", "Ten minutes: the middle of the 5 to 40 minutes GPU nodes take.", ge=10, le=7200
    )
    prior_node_p90_s: float = threshold(2400.0, "s", "Forty minutes, the story's node.", ge=10, le=14_400)
    prior_pod_p50_s: float = threshold(240.0, "s", "Image and weights of a mid-sized model.", ge=1, le=7200)
    prior_pod_p90_s: float = threshold(600.0, "s", "Image and weights on a bad day.", ge=1, le=7200)
    window_s: int = threshold(
        2_419_200,
        "s",
        "Four weeks: older provisioning says little about today's cloud.",
        ge=86_400,
        le=31_536_000,
    )


class EfficiencyPolicy(Section):
    """When demand is low."""

    offer_empty_nodes_after_s: int = threshold(
        600, "s", "Ten minutes empty, as Cluster Autoscaler's unneeded time.", ge=0, le=86_400
    )


class RiskPolicy(Section):
    """What a failure model may lead to. Without a model (the default) nothing here is ever reached."""

    measures: tuple[str, ...] = threshold(
        ("protect_pod", "avoid_node", "spare_replica"),
        "",
        "Rising cost: no scale-down and no new placement cost nothing at first, a spare replica costs a pod.",
    )
    horizon_min: int = threshold(
        30, "minutes", "Long enough for a spare replica to be Ready: a model's 15 min is over before its weights are.",
        ge=5, le=60,
    )  # fmt: skip
    min_probability: float = threshold(
        0.10, "probability within the horizon", "One alert in ten comes true, at least: below it most cost is in vain.",
        ge=0, le=1,
    )  # fmt: skip
    min_lift: float = threshold(
        5.0, "times the base rate", "A pod that is as likely to fail as the others is no news, whatever its number.",
        ge=1, le=10_000,
    )  # fmt: skip
    score_expiry_s: int = threshold(
        600, "s", "Two usage windows of five minutes: what a pod did earlier says little about it now.",
        ge=300, le=7200,
    )  # fmt: skip
    history_s: int = threshold(
        86_400, "s", "A day of usage windows: no feature of a published model looks back further.", ge=900, le=604_800
    )
    hold_s: int = threshold(
        900, "s", "What is done for a pod outlives its last alert by three usage windows, then ends by itself.",
        ge=60, le=7200,
    )  # fmt: skip
    max_protected_pods: int = threshold(
        4, "pods at once", "More at risk at once is an outage or a broken model, and no longer a matter of pods.",
        ge=0, le=1000,
    )  # fmt: skip
    spare_replicas_per_day: int = threshold(
        4, "spare replicas in 24 h", "Bounds what false alarms can cost: four pods for an hour each.", ge=0, le=1000
    )
    max_spare_s: int = threshold(
        3600, "s", "A pod that has not failed an hour after its alert is as good as any.", ge=300, le=86_400
    )
    missing_minute_worth: float = threshold(
        10.0,
        "spare pod-minutes for a pod-minute missing",
        "A pod missing under load loses requests; a spare one costs only itself.",
        ge=0, le=10_000,
    )  # fmt: skip
    full_ratio: float = threshold(
        0.85, "share of the remaining pods' capacity", "Fuller than this without the pod, and requests begin to wait.",
        gt=0, le=2,
    )  # fmt: skip


class RefereePolicy(Section):
    """Who wins."""

    order: tuple[str, ...] = threshold(
        ("safety", "admission", "unblock", "scaling", "efficiency"),
        "",
        "Safety before queue health before cost; least harm first."
    )  # fmt: skip


class Policy(Section):
    """All thresholds. ``Policy()`` is the default policy: shadow mode, nothing is written."""

    version: Literal[1] = 1
    loop: LoopPolicy = LoopPolicy()
    actuation: ActuationPolicy = ActuationPolicy()
    scaling: ScalingPolicy = ScalingPolicy()
    forecast: ForecastPolicy = ForecastPolicy()
    surge: SurgePolicy = SurgePolicy()
    queue: QueuePolicy = QueuePolicy()
    missing_data: MissingDataPolicy = MissingDataPolicy()
    lead_time: LeadTimePolicy = LeadTimePolicy()
    efficiency: EfficiencyPolicy = EfficiencyPolicy()
    risk: RiskPolicy = RiskPolicy()
    referee: RefereePolicy = RefereePolicy()

    @property
    def hash(self) -> str:
        """First 16 hex digits of the SHA-256 of the canonical JSON: equal policies, equal hash.

        A section younger than version 1's first release counts only where it differs from its defaults, so that a
        policy that does not name it keeps the hash its old reports and ledgers carry.
        """
        content = self.model_dump(mode="json", exclude={"risk"} if self.risk == RiskPolicy() else None)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
