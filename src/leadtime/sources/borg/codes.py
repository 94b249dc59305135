"""Event types as a file writes them (number, text, name; 2011 or 2019) → the codes of 2019."""

from collections.abc import Mapping
from dataclasses import dataclass

from leadtime.domain.borg import V2_TO_V3, EventType, MachineEventType
from leadtime.domain.borg_v2 import V2_PRIORITIES, V2_TO_V3_MACHINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """``types``: what stands in the column, as text → code of 2019. ``priorities``: likewise; None: as they are."""

    types: Mapping[str, int]
    priorities: Mapping[int, int] | None = None


def codes_for(table: str, clusterdata: str | None) -> Codes:
    """The reading of ``table``'s codes under the declared version.

    "v2": numbers by ``V2_TO_V3`` and priorities by ``V2_PRIORITIES``. Otherwise the numbers stand as written, also
    where no version is declared: whoever needs them proved must look (the enum gate). Names mean what they say.
    """
    members = MachineEventType if table == "machine_events" else EventType
    names = {member.name: member.value for member in members}
    if clusterdata == "v2":
        mapped = V2_TO_V3_MACHINE if table == "machine_events" else V2_TO_V3
        return Codes(types={**names, **{str(old): int(new) for old, new in mapped.items()}}, priorities=V2_PRIORITIES)
    return Codes(types={**names, **{str(member.value): member.value for member in members}})
