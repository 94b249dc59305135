"""``trace.json`` beside the shards → what the trace says of itself: cell, clusterdata version, end of observation."""

from pathlib import Path
from typing import Literal

import msgspec

from leadtime.domain.borg import DECLARATION, DECLARATION_SCHEMA
from leadtime.sources.borg.trace_errors import bad_shard, first_line


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What ``trace.json`` may say; further keys are its writer's business."""

    schema: str = DECLARATION_SCHEMA
    cell: str | None = None
    clusterdata: Literal["v2", "v3"] | None = None
    observed_until_us: int | None = None


NOTHING_DECLARED = Declaration()


def read_declaration(folder: Path) -> Declaration:
    """The folder's declaration; ``NOTHING_DECLARED`` where it has none. Raises BadTrace for one that is broken."""
    path = folder / DECLARATION
    if not path.is_file():
        return NOTHING_DECLARED
    cure = f'write {{"schema": "{DECLARATION_SCHEMA}", "cell": …, "clusterdata": "v3" or "v2", "observed_until_us": …}}'
    try:
        declared = msgspec.json.decode(path.read_bytes(), type=Declaration)
    except (OSError, msgspec.DecodeError) as error:
        raise bad_shard("borg-declaration", path, f"it is not a declaration ({first_line(error)})", cure) from None
    if declared.schema != DECLARATION_SCHEMA:
        raise bad_shard("borg-declaration", path, f"its schema is {declared.schema!r}", cure)
    return declared
