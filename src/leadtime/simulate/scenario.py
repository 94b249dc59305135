"""A scenario file → a validated, frozen Scenario: workloads, queues, pools and how long everything takes.

Demand is no part of it: the same cluster is played under many demands. In a ``cpu`` pool the fields named ``gpus``
count whole cores; nothing else differs. Shipped scenarios lie beside this module and are loaded by name.
"""

from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from leadtime.domain.errors import BadScenario
from leadtime.domain.refs import WorkloadRef
from leadtime.mechanics.stages import StageDistribution

MAX_FILE_BYTES = 1_000_000


class Part(BaseModel):
    """Frozen, and a misspelt field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StageScenario(Part):
    """One stage's duration: log-normal, P50 times a factor all items of a day share times one per item."""

    name: str = Field(min_length=1)
    p50_s: float = Field(ge=0, le=86_400)
    day_p90_over_p50: float = Field(default=1.0, ge=1, le=20)
    item_p90_over_p50: float = Field(default=1.0, ge=1, le=20)

    def distribution(self) -> StageDistribution:
        """The same as mechanics wants it."""
        return StageDistribution(**self.model_dump())


class RateScenario(Part):
    """One rate policy of spec.behavior: at most ``value`` pods or percent within ``period_s``."""

    type: Literal["Pods", "Percent"]
    value: int = Field(gt=0)
    period_s: int = Field(gt=0, le=1800)


class DirectionScenario(Part):
    """One direction of spec.behavior; what is left out keeps the API server's default."""

    window_s: int | None = Field(default=None, ge=0, le=3600)
    select: Literal["Max", "Min", "Disabled"] | None = None
    policies: tuple[RateScenario, ...] | None = Field(default=None, min_length=1)
    tolerance_ratio: float | None = Field(default=None, ge=0, lt=1)


class BehaviorScenario(Part):
    """spec.behavior."""

    scale_up: DirectionScenario = DirectionScenario()
    scale_down: DirectionScenario = DirectionScenario()


class HpaScenario(Part):
    """The owner's HPA: an external metric (requests/s of the workload), AverageValue = target_ratio · capacity.

    A sync happens at the first step that begins when it is due or later. ``behavior`` ``default`` leaves spec.behavior
    unset. ``downscale_stabilisation_s`` is the controller's flag, in force where the behaviour names no window.
    """

    target_ratio: float = Field(default=0.70, gt=0, le=2)
    sync_s: int = Field(default=15, ge=1, le=600)
    tolerance_ratio: float = Field(default=0.10, ge=0, lt=1)
    downscale_stabilisation_s: int = Field(default=300, ge=0, le=3600)
    behavior: Literal["default"] | BehaviorScenario = "default"


class LowPriorityScenario(Part):
    """A batch workload in the same queue: one pod every ``every_s`` s, that runs ``run_s`` s once it is bound."""

    name: str = "batch"
    every_s: float = Field(gt=0)
    run_s: float = Field(gt=0)
    gpus_per_pod: int = Field(default=1, ge=1)
    priority: int = Field(default=-10)


class WorkloadScenario(Part):
    """One Deployment behind an HPA."""

    namespace: str = Field(default="serving", min_length=1)
    name: str = Field(min_length=1)
    queue: str = Field(min_length=1)
    pool: str = Field(min_length=1)
    capacity_per_pod_rps: float = Field(gt=0)
    gpus_per_pod: int = Field(default=1, ge=1)
    min_replicas: int = Field(ge=1, le=100_000)
    max_replicas: int = Field(ge=1, le=100_000)
    initial_replicas: int | None = Field(default=None, ge=1, le=100_000, description="min_replicas when left out")
    priority: int = 0
    hpa: HpaScenario = HpaScenario()
    image: StageScenario = StageScenario(name="image", p50_s=60, item_p90_over_p50=4)
    weights: StageScenario = StageScenario(name="weights", p50_s=90, item_p90_over_p50=3.33)
    image_cached_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="share of the pull on a node that has the image; 1.0: pulled anew each time",
    )
    low_priority_pods: LowPriorityScenario | None = None

    @property
    def ref(self) -> WorkloadRef:
        """The workload's name in snapshots."""
        return WorkloadRef(namespace=self.namespace, name=self.name)

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @model_validator(mode="after")
    def _in_order(self) -> "WorkloadScenario":
        initial = self.min_replicas if self.initial_replicas is None else self.initial_replicas
        if not self.min_replicas <= initial <= self.max_replicas:
            raise ValueError(
                f"min_replicas {self.min_replicas}, initial_replicas {initial} and max_replicas {self.max_replicas} "
                "must stand in this order"
            )
        return self


class PoolScenario(Part):
    """One node pool. ``static_nodes`` stand from the start and are never consolidated; ``max_nodes`` counts them too.

    ``consolidate_after_s``: a node without pods is deleted after this; with ``consolidation: underutilised`` (Cluster
    Autoscaler only) so is one under half used whose pods fit elsewhere: they are evicted and start anew. ``stages``:
    from the request to allocatable, in order; a node costs from its request on (the launch was accepted then) until it
    is deleted.
    """

    name: str = Field(min_length=1)
    resource: Literal["gpu", "cpu"] = "gpu"
    gpus_per_node: int = Field(ge=1, le=1024)
    static_nodes: int = Field(default=0, ge=0)
    max_nodes: int = Field(ge=1, le=20_000)
    autoscaler: Literal["karpenter", "cluster-autoscaler"] = "karpenter"
    consolidation: Literal["when_empty", "underutilised"] = "when_empty"
    consolidate_after_s: float = Field(default=600, ge=0)
    scheduling: Literal["most_allocated", "least_allocated"] = "most_allocated"
    stages: tuple[StageScenario, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> "PoolScenario":
        if self.static_nodes > self.max_nodes:
            raise ValueError(f"static_nodes {self.static_nodes} is above max_nodes {self.max_nodes}")
        if self.consolidation == "underutilised" and self.autoscaler != "cluster-autoscaler":
            raise ValueError("consolidation underutilised is played for autoscaler cluster-autoscaler only")
        names = [stage.name for stage in self.stages]
        if len(set(names)) < len(names) or "ready" in names:
            raise ValueError(f"stage names {names} must differ, and none may be 'ready'")
        return self


class FailuresScenario(Part):
    """Pods fail by the trace generator's hidden chain from the scored span's start on (simulate/pod_failures.py).

    ``base_rate``: share of usage windows after which a pod fails within 15 minutes, as the generator counts it.
    ``mu``: how far the usage of a degrading pod stands out, in standard deviations; 0: nothing tells them apart.
    """

    base_rate: float = Field(default=0.001, ge=1e-5, le=0.2)
    mu: float = Field(default=1.5, ge=0, le=6)


class Scenario(Part):
    """A whole cluster. ``queue_limit_requests``: requests that may wait per workload; None is no limit.

    ``failures``: None: no pod ever fails by itself.
    """

    name: str = Field(min_length=1)
    step_s: int = Field(default=15, ge=1, le=60)
    patience_s: float = Field(default=30, ge=0, le=3600)
    slo_s: float = Field(gt=0)
    service_time_s: float = Field(gt=0)
    queue_limit_requests: float | None = Field(default=None, ge=0)
    metric_lag_s: float = Field(default=15, ge=0, le=3600)
    warm_hold_s: float = Field(default=1800, ge=0)
    workloads: tuple[WorkloadScenario, ...] = Field(min_length=1)
    pools: tuple[PoolScenario, ...] = Field(min_length=1)
    failures: FailuresScenario | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Scenario":
        if 60 % self.step_s:
            raise ValueError(f"step_s {self.step_s} must divide a minute")
        pools = {pool.name: pool for pool in self.pools}
        twice = [
            name for name, n in Counter([p.name for p in self.pools] + [w.key for w in self.workloads]).items() if n > 1
        ]
        if twice:
            raise ValueError(f"named twice: {', '.join(twice)}")
        queues: dict[str, str] = {}
        for work in self.workloads:
            if work.pool not in pools:
                raise ValueError(f"workload {work.key}: pool {work.pool} is not among {', '.join(pools)}")
            if queues.setdefault(work.queue, work.pool) != work.pool:
                raise ValueError(
                    f"queue {work.queue}: its workloads name pools {queues[work.queue]} and {work.pool}; one only"
                )
            low = work.low_priority_pods
            largest = max(work.gpus_per_pod, low.gpus_per_pod if low else 0)
            if largest > pools[work.pool].gpus_per_node:
                raise ValueError(f"workload {work.key}: a pod of {largest} GPUs fits no node of pool {work.pool}")
        return self

    def workload(self, key: str) -> WorkloadScenario:
        """The workload ``namespace/name``. Raises KeyError when there is none."""
        for work in self.workloads:
            if work.key == key:
                return work
        raise KeyError(key)

    def with_capacity(self, capacity_per_pod_rps: float) -> "Scenario":
        """A copy in which every workload's ready pod serves ``capacity_per_pod_rps``."""
        works = tuple(work.model_copy(update={"capacity_per_pod_rps": capacity_per_pod_rps}) for work in self.workloads)
        return self.model_copy(update={"workloads": works})


def shipped() -> tuple[str, ...]:
    """Names of the scenarios that come with leadtime, in alphabetical order."""
    folder = resources.files("leadtime.simulate") / "scenarios"
    return tuple(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml")))


def load(name_or_file: str) -> Scenario:
    """The shipped scenario of this name, or the scenario in this YAML file. Raises BadScenario."""
    if name_or_file in shipped():
        text = (resources.files("leadtime.simulate") / "scenarios" / f"{name_or_file}.yaml").read_text("utf-8")
    else:
        text = _read(name_or_file)
    return parse(text, name_or_file)


def _read(file: str) -> str:
    """The file's text, within the size limit."""
    path, doing = Path(file), f"loading scenario {file}"
    names = ", ".join(shipped())
    if not path.is_file():
        raise BadScenario(
            "scenario-not-found", doing, "no such scenario and no such file", f"use a file or one of {names}"
        )
    if path.stat().st_size > MAX_FILE_BYTES:
        raise BadScenario("scenario-too-large", doing, "larger than 1 MB", "give a scenario file, not data")
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadScenario("scenario-unreadable", doing, str(error), "give a readable UTF-8 YAML file") from None


def parse(text: str, origin: str) -> Scenario:
    """YAML text → Scenario; ``origin`` names it in errors. Raises BadScenario."""
    doing = f"loading scenario {origin}"
    try:
        content: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadScenario("scenario-not-yaml", doing, " ".join(str(error).split()), "mend the YAML") from None
    if not isinstance(content, dict):
        raise BadScenario("scenario-not-yaml", doing, "it holds no fields", "begin with `name:` and `workloads:`")
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "scenario"
        wrong = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        raise BadScenario("scenario-invalid", doing, wrong, "correct this field") from None
