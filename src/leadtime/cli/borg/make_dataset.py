"""``leadtime borg make-dataset``: raw shards → joined windows with everything known at their end, checked."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.options import parse_folder

if TYPE_CHECKING:
    from rich.console import Console

    from leadtime.training.dataset import Dataset
    from leadtime.training.executor import Executor
    from leadtime.training.workspace import Workspace

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg make-dataset --cells b,c\n"
    "  leadtime borg make-dataset --in shards --out windows --executor processes --workers 4"
)
FOUND_EXIT = 1
ROWS_PER_PARTITION = 1_000_000


class Where(StrEnum):
    """Executors by name."""

    LOCAL = "local"
    PROCESSES = "processes"
    RAY = "ray"


_IN_HELP = "Folder of shards, or of one folder a cell; BORG_DATA_DIR if left out."
_In = Annotated[Path | None, typer.Option("--in", parser=parse_folder, metavar="DIR", help=_IN_HELP)]
_OUT_HELP = "Folder for the windows; BORG_PROCESSED_DIR if left out."
_Out = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help=_OUT_HELP)]
_Cells = Annotated[str | None, typer.Option(metavar="b,c", help="These cells only; all that are there if left out.")]
_Executor = Annotated[Where, typer.Option(help="Where partitions are built.")]
_Workers = Annotated[int, typer.Option(min=1, help="Processes; each needs the memory of one partition.")]
_RAY_HELP = "Head node of a Ray cluster that shares both folders; a cluster of this machine if left out."
_Ray = Annotated[str | None, typer.Option(metavar="HOST:PORT", help=_RAY_HELP)]
_Rows = Annotated[int, typer.Option(min=1, help="Usage rows of a partition, about: bounds the memory of a worker.")]
_ALLOW_HELP = "Let this gate fail, or this gap be (machines-missing, collections-missing); may be repeated."
_Allow = Annotated[list[str] | None, typer.Option(metavar="NAME", help=_ALLOW_HELP)]
_Json = Annotated[bool, typer.Option("--json", help="Print dataset.json on stdout.")]


def make_dataset(
    *, source: _In = None, out: _Out = None, cells: _Cells = None, executor: _Executor = Where.LOCAL,
    workers: _Workers = 2, ray_address: _Ray = None, rows_per_partition: _Rows = ROWS_PER_PARTITION,
    allow: _Allow = None, json: _Json = False,
) -> None:  # fmt: skip
    """Join usage, events and machines into windows, and check them (exit 1 when a gate fails; run again to resume)."""
    import os

    from leadtime.cli.borg.extras import need
    from leadtime.cli.console import stderr

    need("joining a trace", "polars", *(["ray"] if executor is Where.RAY else []))
    from leadtime.cli.borg.progress import shown
    from leadtime.training.dataset import described
    from leadtime.training.dataset import make_dataset as make
    from leadtime.training.workspace import WORKSPACE, workspace

    places, console = workspace(os.environ), stderr()
    with shown(console) as progress:
        dataset = make(
            source or places.data, out or places.windows, cells=names_in(cells), rows_per_partition=rows_per_partition,
            executor=executor_of(executor, workers, ray_address), allow=frozenset(allow or ()), progress=progress,
        )  # fmt: skip
    if out is None and os.environ.get(WORKSPACE):
        _keep(places, dataset, rows_per_partition)
    _show(console, dataset)
    if json:
        import json as to_text

        typer.echo(to_text.dumps(described(dataset), indent=2, allow_nan=False))
    if not dataset.is_usable:
        raise typer.Exit(FOUND_EXIT)


def _keep(places: "Workspace", dataset: "Dataset", rows_per_partition: int) -> None:
    """The run's settings, resolved, in the workspace that the environment names."""
    from leadtime.training.dataset import described
    from leadtime.training.layout import keep_settings

    told = described(dataset)
    settings = {
        "command": "borg make-dataset", "cells": told["cells"], "rows_per_partition": rows_per_partition,
        "allow": told["allowed"], "data_hash": told["data_hash"],
    }  # fmt: skip
    keep_settings(places, "make-dataset", settings)


def names_in(cells: str | None) -> tuple[str, ...] | None:
    """``b,c`` → names; None for all. Raises typer.BadParameter for an empty list."""
    if cells is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in cells.split(",") if name.strip()))
    if not names:
        raise typer.BadParameter("--cells names no cell; write --cells b,c")
    return names


def executor_of(where: Where, workers: int, ray_address: str | None) -> "Executor":
    from leadtime.training.executor import Local, Processes

    if ray_address is not None and where is not Where.RAY:
        raise typer.BadParameter("--ray-address goes with --executor ray")
    if where is Where.RAY:
        from leadtime.training.ray_executor import Ray

        return Ray(ray_address)
    return Processes(workers) if where is Where.PROCESSES else Local()


def _show(console: "Console", dataset: "Dataset") -> None:
    """What was built of what, what was kept, and each failed or allowed gate on a line of its own."""
    from leadtime.risk.gates import too_small

    for name, why in dataset.rebuilt.items():
        console.print(f"cell {name} was built afresh: {why}", markup=False, soft_wrap=True)
    for cell in dataset.cells:
        usage = [source for source in cell.sources if source.table == "instance_usage"]
        rejected = sum(sum(source.rejects.values()) for source in usage)
        console.print(
            f"cell {cell.cell}: {sum(part.rows for part in cell.partitions):,} windows in {len(cell.partitions)} "
            f"partitions, from {sum(source.rows_in for source in usage):,} usage rows in {len(usage)} files "
            f"({sum(source.alloc_rows for source in usage):,} of alloc instances, {rejected:,} rejected)",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    for gate in dataset.gates:
        if gate["standing"] in ("failed", "allowed"):
            where = f" [{gate['where']}]" if gate["where"] else ""
            console.print(
                f"{gate['standing']} {gate['name']}{where}: {gate['sentence']}; {gate['cure']}",
                markup=False, soft_wrap=True,
            )  # fmt: skip
    if not dataset.is_usable:
        console.print(
            f"not usable for training: {', '.join(dataset.failed_gates)} failed; mend the trace, or accept with "
            f"{' '.join(f'--allow {name}' for name in dataset.failed_gates)}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if (small := too_small(dataset.gates)) is not None:
        console.print(small, markup=False, soft_wrap=True)
    kept = f", {dataset.kept_partitions} partitions kept from an earlier run" if dataset.kept_partitions else ""
    console.print(f"{dataset.folder}: data hash {dataset.data_hash}{kept}", markup=False, soft_wrap=True)
