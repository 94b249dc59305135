"""Runs of label values over time → lives of pods and nodes.

A run is a label set with one value, seen at every instant of the grid from ``at_s`` to ``until_s`` (both closed). What
no query told stays None. A counter that falls has begun anew (Prometheus' own rule): its new value counts whole.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from leadtime.risk.kube_lives import NodeLife, Owner, PodLife, Request, Termination

Frames = Mapping[str, pl.DataFrame]  # name of the query (sources.kube_queries) → labels, at_s, until_s, value
Pod = tuple[str, str, str]
Row = dict[str, Any]
PLATFORM = "label_node_kubernetes_io_instance_type"
PARENTS = {"ReplicaSet": "replicaset_owners", "Job": "job_owners"}


def runs(samples: pl.DataFrame, step_s: int) -> pl.DataFrame:
    """Samples (labels, at_s, value) → runs (labels, at_s, until_s, value), by labels and time."""
    labels = [name for name in samples.columns if name not in {"at_s", "value"}]
    ordered = samples.sort(*labels, "at_s")
    new = (pl.col("value") != pl.col("value").shift()) | (pl.col("at_s") - pl.col("at_s").shift() > step_s)
    for name in labels:
        new |= pl.col(name) != pl.col(name).shift()
    numbered = ordered.with_columns(run=new.fill_null(value=True).cum_sum())
    return (
        numbered.group_by("run", maintain_order=True)
        .agg(*(pl.col(name).first() for name in labels), pl.col("at_s").first(), pl.col("at_s").last().alias("until_s"),
             pl.col("value").first())
        .drop("run")
    )  # fmt: skip


def pod_lives(frames: Frames, *, start_s: int) -> tuple[PodLife, ...]:
    """Lives by first instant, then name; ``start_s``: what ended before it is no termination of ours."""
    facts = _Facts(frames, start_s)
    lives = [facts.life(key, rows) for key, rows in facts.of("pods").items()]
    return tuple(sorted(lives, key=lambda life: (life.first_s, life.namespace, life.pod, life.uid)))


def node_lives(frames: Frames) -> tuple[NodeLife, ...]:
    """Nodes by name, with what they could give, as it changed."""
    platforms = {row["node"]: row[PLATFORM] for row in _rows(frames, "node_labels") if row[PLATFORM]}
    by_node: dict[str, list[Row]] = {}
    for row in _rows(frames, "nodes"):
        by_node.setdefault(row["node"], []).append(row)
    return tuple(
        NodeLife(
            node=node, first_s=rows[0]["at_s"], last_s=max(row["until_s"] for row in rows),
            shapes=tuple(_shapes(rows)), platform=platforms.get(node),
        )
        for node, rows in sorted(by_node.items())
    )  # fmt: skip


def _shapes(rows: list[Row]) -> Iterator[tuple[int, float | None, float | None]]:
    shape: dict[str, float] = {}
    for at in sorted({row["at_s"] for row in rows}):
        now = shape | {row["resource"]: row["value"] for row in rows if row["at_s"] == at}
        if now != shape:
            yield at, now.get("cpu"), now.get("memory")
        shape = now


def _rows(frames: Frames, name: str) -> list[Row]:
    frame = frames.get(name)
    return [] if frame is None else frame.sort("at_s", maintain_order=True).to_dicts()


class _Facts:
    """Rows of every query by pod, found once."""

    def __init__(self, frames: Frames, start_s: int) -> None:
        self._frames, self._start_s = frames, start_s
        self._found: dict[str, dict[Pod, list[Row]]] = {}
        self._parents = {
            (kind, row["namespace"], row[kind.lower() if kind == "ReplicaSet" else "job_name"]): (
                row["owner_kind"], row["owner_name"],
            )
            for kind, name in PARENTS.items() for row in _rows(frames, name)
        }  # fmt: skip

    def of(self, name: str) -> dict[Pod, list[Row]]:
        """(namespace, pod, uid) → rows of the query, oldest first."""
        if name not in self._found:
            found: dict[Pod, list[Row]] = {}
            for row in _rows(self._frames, name):
                found.setdefault((row["namespace"], row["pod"], row["uid"]), []).append(row)
            self._found[name] = found
        return self._found[name]

    def life(self, key: Pod, infos: list[Row]) -> PodLife:
        """All that is told of one pod; ``infos``: its rows of kube_pod_info."""
        terminations, unseen = self._terminations(key, infos[0]["at_s"])
        return PodLife(
            namespace=key[0], pod=key[1], uid=key[2], owner=self._owner(key, infos[-1]),
            node=next((row["node"] for row in reversed(infos) if row["node"]), None),
            first_s=infos[0]["at_s"], last_s=max(row["until_s"] for row in infos),
            created_s=self._number("created", key), scheduled_s=self._number("scheduled", key)
            or self._number("started", key), deletion_s=self._number("deleted", key),
            completed_s=self._number("completed", key), phases=self._first_seen("phases", "phase", key),
            reasons=self._first_seen("reasons", "reason", key), terminations=terminations, restarts_unseen=unseen,
            requests=tuple(self._requests(key)), memory_limit=self._memory_limit(key),
            qos=next(iter(self._first_seen("classes", "qos_class", key)), None),
            priority_class=infos[-1]["priority_class"] or None,
        )  # fmt: skip

    def _number(self, name: str, key: Pod) -> int | None:
        rows = self.of(name).get(key)
        return round(rows[-1]["value"]) if rows else None

    def _first_seen(self, name: str, label: str, key: Pod) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in self.of(name).get(key, []):
            found.setdefault(row[label], row["at_s"])
        return found

    def _owner(self, key: Pod, info: Row) -> Owner:
        """The topmost owner told of: a Deployment for its ReplicaSet's pods, a CronJob for its Job's."""
        told = self.of("owners").get(key)
        kind, name = (told[-1]["owner_kind"], told[-1]["owner_name"]) if told else (
            info["created_by_kind"], info["created_by_name"],
        )  # fmt: skip
        if not name or kind in {"", "<none>", "Node"}:
            return Owner(namespace=key[0], kind="Pod", name=key[1])
        above = self._parents.get((kind, key[0], name))
        if above and above[1] and above[0] not in {"", "<none>"}:
            kind, name = above
        return Owner(namespace=key[0], kind=kind, name=name)

    def _requests(self, key: Pod) -> Iterator[Request]:
        """Sums over containers as they changed. Nothing asked for is 0 where the query found anything at all."""
        frame = self._frames.get("requests")
        if frame is None or frame.is_empty():
            return
        rows = self.of("requests").get(key, [])
        last: tuple[float, float] | None = None
        for at in sorted({row["at_s"] for row in rows} | {self.of("pods")[key][0]["at_s"]}):
            held = [row for row in rows if row["at_s"] <= at <= row["until_s"]]
            now = (
                sum((row["value"] for row in held if row["resource"] == "cpu"), 0.0),
                sum((row["value"] for row in held if row["resource"] == "memory"), 0.0),
            )
            if now != last:
                yield Request(at_s=at, cpu=now[0], memory=now[1])
            last = now

    def _memory_limit(self, key: Pod) -> float | None:
        """Sum of the newest limits; None where a container has none: the node is the limit then."""
        newest = {
            row["container"]: row["value"] for row in self.of("limits").get(key, []) if row["resource"] == "memory"
        }
        containers = {row["container"] for name in ("restarts", "requests") for row in self.of(name).get(key, [])}
        return sum(newest.values()) if newest and containers <= set(newest) else None

    def _terminations(self, key: Pod, first_s: int) -> tuple[tuple[Termination, ...], int]:
        """Ends of containers in order, and how many restarts were counted of which nothing else is known."""
        counted = self.of("restarts").get(key, [])
        told = self.of("ended_times").get(key, [])
        created = self._number("created", key)
        is_new = (created if created is not None else first_s) > self._start_s
        found, unseen = [], 0
        for container in sorted({row["container"] for row in (*counted, *told)}):
            mine = [row for row in counted if row["container"] == container]
            rises = list(_rises(mine, is_new=is_new))
            times = dict[int, int]()  # moment → instant of the grid it was first seen at
            for row in told:
                if row["container"] == container and row["value"] > self._start_s:
                    times.setdefault(round(row["value"]), row["at_s"])
            moments = times or {at: at for at, _ in rises}
            found += [self._termination(key, container, at, seen, rises) for at, seen in moments.items()]
            unseen += max(0, sum(by for _, by in rises) - len(moments))
        return tuple(sorted(found, key=lambda end: (end.at_s, end.container))), unseen

    def _termination(
        self, key: Pod, container: str, at: int, seen: int, rises: list[tuple[int, int]]
    ) -> Termination:  # fmt: skip
        def holding(name: str) -> Row | None:
            rows = self.of(name).get(key, [])
            return next((r for r in rows if r["container"] == container and r["at_s"] <= seen <= r["until_s"]), None)

        reason, code = holding("ended_reasons"), holding("ended_codes")
        starts = [
            round(row["value"]) for row in self.of("running_since").get(key, [])
            if row["container"] == container and row["value"] >= at
        ] or [rise for rise, _ in rises if rise >= at]  # fmt: skip
        return Termination(
            at_s=at, reason=None if reason is None else reason["reason"],
            exit_code=None if code is None else round(code["value"]), resumed_s=min(starts, default=None),
            container=container,
        )  # fmt: skip


def _rises(rows: list[Row], *, is_new: bool) -> Iterator[tuple[int, int]]:
    """(instant, restarts since the one before) of one container's counter; before the first only if the pod is new."""
    before = 0 if is_new else None
    for row in rows:
        value = round(row["value"])
        by = value if before is not None and value < before else value - (value if before is None else before)
        if by > 0:
            yield row["at_s"], by
        before = value
