"""The schema → one record a threshold: path, kind, unit, bounds, default, reason. All who show thresholds read it."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumType
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from leadtime.policy.schema import Policy, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdField:
    """One threshold. ``lowest``/``highest`` None: no bound or no number; ``above``: ``lowest`` itself is outside."""

    path: str  # section.name
    kind: type
    unit: str
    default: object
    why: str
    lowest: float | None
    highest: float | None
    above: bool
    choices: tuple[str, ...]

    @property
    def section(self) -> str:
        """``scaling`` of ``scaling.replica_cap``."""
        return self.path.partition(".")[0]

    @property
    def name(self) -> str:
        """``replica_cap`` of ``scaling.replica_cap``."""
        return self.path.partition(".")[2]

    @property
    def is_number(self) -> bool:
        """True for whole numbers and ratios, False for switches, words and lists."""
        return self.kind in {int, float}

    @property
    def bounds(self) -> str:
        """What may be written, e.g. ``0.05–0.95``, ``true or false``, ``at_once or stepwise``."""
        if self.choices:
            return " or ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return f"an {self.unit}" if self.unit else "text"
        if self.lowest is None or self.highest is None:
            return "a list of names"
        if self.above:
            return f"above {plain(self.lowest)}, at most {plain(self.highest)}"
        return f"{plain(self.lowest)}–{plain(self.highest)}"

    def allows(self, value: float) -> bool:
        """True when a number lies within the bounds."""
        above_lowest = self.lowest is None or value > self.lowest or (value == self.lowest and not self.above)
        return above_lowest and (self.highest is None or value <= self.highest)


def plain(value: object) -> str:
    """A value as a person writes it in a policy file: 0.7, 900, true, stepwise, a list in brackets.

    >>> plain(2419200.0), plain(True), plain(("safety", "scaling"))
    ('2419200', 'true', '[safety, scaling]')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(plain(part) for part in value)}]"
    return str(value)


def all_fields() -> tuple[ThresholdField, ...]:
    """Every threshold in the schema's order."""
    return tuple(_read())


def value_of(policy: Policy, path: str) -> object:
    """The value that ``policy`` holds for ``section.name``. Raises AttributeError for an unknown path."""
    section, _, name = path.partition(".")
    return getattr(getattr(policy, section), name)


def sections() -> dict[str, type[Section]]:
    """Section name → its class, in the schema's order."""
    return {
        name: info.annotation
        for name, info in Policy.model_fields.items()
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section)
    }


def _read() -> Iterator[ThresholdField]:
    for section, of in sections().items():
        for name, info in of.model_fields.items():
            yield _field(f"{section}.{name}", info)


def _field(path: str, info: FieldInfo) -> ThresholdField:
    lowest, highest, above = _bounds(info.metadata)
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    annotation: Any = info.annotation
    choices: tuple[str, ...] = ()
    kind: Any = str
    if get_origin(annotation) is Literal:
        choices = tuple(str(choice) for choice in get_args(annotation))
    elif isinstance(annotation, EnumType):
        members: list[Any] = list(annotation)
        choices = tuple(str(member.value) for member in members)
    else:
        kind = tuple if get_origin(annotation) is tuple else annotation
    return ThresholdField(
        path=path, kind=kind, unit=str(extra.get("unit", "")), default=info.default, why=info.description or "",
        lowest=lowest, highest=highest, above=above, choices=choices,
    )  # fmt: skip


def _bounds(metadata: list[Any]) -> tuple[float | None, float | None, bool]:
    """pydantic's constraint marks → (lowest, highest, whether lowest itself is outside)."""
    lowest: float | None = None
    highest: float | None = None
    above = False
    for mark in metadata:
        if isinstance(mark, annotated_types.Ge):
            lowest = mark.ge  # type: ignore[assignment]  # the schema bounds numbers by numbers only
        elif isinstance(mark, annotated_types.Gt):
            lowest, above = mark.gt, True  # type: ignore[assignment]
        elif isinstance(mark, annotated_types.Le):
            highest = mark.le  # type: ignore[assignment]
    return lowest, highest, above
