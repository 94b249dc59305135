"""Knobs and shapes → all that is drawn once for a trace: the chain, the plan of collections, the machines."""

from dataclasses import dataclass
from pathlib import Path

from leadtime.simulate.borg.chain import Chain, expected, solved
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.borg.machines import Machines, machines
from leadtime.simulate.borg.optimum import Future, future
from leadtime.simulate.borg.plan import Plan, planned
from leadtime.simulate.borg.shapes import Shapes, shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """``chains``: first and second half of the trace. ``windows_a_task``: expected usage windows of a task slot."""

    knobs: Knobs
    shapes: Shapes
    chains: tuple[Chain, Chain]
    plan: Plan
    machines: Machines
    future: Future
    windows_a_task: float


def drawn(knobs: Knobs, shapes_folder: Path | None = None) -> World:
    """The world of checked knobs. Raises BadTrace: base rate out of reach, unreadable shapes."""
    chain = solved(knobs)
    chains = (chain, chain.scaled(knobs.drift_degrades))
    known = shapes(knobs.cell, shapes_folder)
    return World(
        knobs=knobs, shapes=known, chains=chains, plan=planned(knobs, chain, known), machines=machines(knobs, known),
        future=future(chains, knobs), windows_a_task=expected(chain, knobs).windows,
    )  # fmt: skip
