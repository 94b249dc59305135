"""Installed packages that offer demand models → trainees of the field, or one that says why it cannot take part.

A package names a function in the entry point group ``leadtime.demand_models``; called with the time zone it gives a
``Trainee``. So a foundation model (Toto, Chronos-2, TimesFM) joins the race with the user's own code and weights:
``forecast.context_model.ContextModel`` turns a reader of contexts into a model.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from leadtime.training.backtest.trainee import MinuteHistory, Note, NotFitted, Trainee

GROUP = "leadtime.demand_models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A plug-in that could not be loaded: stands in the report with its reason."""

    name: str
    reason: str

    def fit(self, history: MinuteHistory, *, seed: int, budget_s: float, progress: Note) -> NotFitted:
        """See Trainee."""
        del history, seed, budget_s, progress
        return NotFitted(reason=self.reason)


def plugged_in(zone: str, taken: Iterable[str], found: Iterable[EntryPoint] | None = None) -> tuple[Trainee, ...]:
    """Every model that installed packages offer, by name. ``taken``: names that are ours.

    A plug-in that fails to load, or takes a name, is refused by name with the reason; it stops nothing else.
    ``found``: entry points instead of those installed.
    """
    names = set(taken)
    trainees: list[Trainee] = []
    points = entry_points(group=GROUP) if found is None else found
    for point in sorted(points, key=lambda one: (one.name, one.value)):
        trainee = _loaded(point, zone)
        if trainee.name in names:
            trainee = Broken(name=f"{point.name} ({point.value})", reason=f"there is a model {trainee.name} already")
        names.add(trainee.name)
        trainees.append(trainee)
    return tuple(trainees)


def _loaded(point: EntryPoint, zone: str) -> Trainee:
    try:
        offered = point.load()(zone)
        if not isinstance(getattr(offered, "name", None), str) or not callable(getattr(offered, "fit", None)):
            return Broken(name=point.name, reason=f"plug-in {point.value} is no trainee: it lacks name or fit")
    except Exception as error:  # noqa: BLE001 - somebody else's code: whatever it raises is the reason
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Broken(name=point.name, reason=f"plug-in {point.value} could not be loaded ({said})")
    trainee: Trainee = offered
    return trainee
