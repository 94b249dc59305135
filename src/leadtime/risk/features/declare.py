"""What a feature is: one declaration each, from which the builder, the dictionary and the checks are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from leadtime.risk.features.block import Block
from leadtime.risk.features.steps import Values

KEY: Mapping[str, str] = {
    "cell": "String",
    "collection_id": "Int64",
    "instance_index": "Int32",
    "start_time_us": "Int64",
    "end_time_us": "Int64",
}  # names a row; never a feature
BESIDE: Mapping[str, str] = {"run_number": "Int32", "tier": "Int8"}  # carried for splits and reports; not features
OUTCOME = ("next_terminal_time_us", "next_terminal_type", "next_terminal_cause")  # what no builder may see

Builder = Callable[[Block], Values]


class Profile(StrEnum):
    """Which features a data set has: few of the task's own run, or everything known at the window's end."""

    BASELINE = "baseline"
    ADVANCED = "advanced"


BOTH = (Profile.BASELINE, Profile.ADVANCED)
ADVANCED = (Profile.ADVANCED,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One column: a number known at p = the window's end.

    ``formula`` says in words how it comes about; ``known`` names the columns and tables it is made from and why they
    are known at p; ``build`` makes all values of a block, Float64 [rows], NaN where there is none.
    """

    name: str
    unit: str
    formula: str
    known: str
    build: Builder
    profiles: tuple[Profile, ...] = ADVANCED
