"""What ``compare_runs`` found to differ between two runs → one line each for a person; what is equal is left out.

Runs may be unlike altogether (a baseline against a boosted run, other horizons, another profile). Then the kind of
unlikeness is the line; settings of another kind of run are not set side by side, they have nothing in common.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST = 8  # names or numbers in one line; the rest is counted
NONE = "none"
Fields = Mapping[str, Any]
_ROWS = ("rows_in_both", "rows_only_now", "rows_only_before")


def differences(now: Fields, before: Fields, data: Fields) -> list[str]:
    """Lines, most telling first: kind of run, horizons, then data, then settings.

    ``now``, ``before``: metrics.json of both runs; ``data``: ``compare_runs.compare``'s entry of that name.
    """
    lines = [*_kinds(now, before), *_horizons(now, before)]
    for name, value in data.items():
        if name in _ROWS or name == "settings":
            continue
        lines += _of(name.replace("_", " "), value)
    if now.get("kind") == before.get("kind"):
        lines += [f"setting {path}: {said}" for path, said in _leaves(data.get("settings") or {})]
    return lines


def _kinds(now: Fields, before: Fields) -> Iterator[str]:
    if now.get("kind") != before.get("kind"):
        yield f"kind of run: {before.get('kind')} → {now.get('kind')}; settings of these are not comparable"


def _horizons(now: Fields, before: Fields) -> Iterator[str]:
    ours, theirs = list(now["horizons"]), list(before["horizons"])
    if ours == theirs:
        return
    shared = [m for m in ours if m in theirs]
    compared = f"compared: {', '.join(shared)}" if shared else "none in common"
    yield f"horizons (min): {', '.join(theirs)} → {', '.join(ours)}; {compared}"


def _of(name: str, value: Any) -> Iterator[str]:
    """One line a name; nothing where nothing differs."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value:
            yield f"{name}: {len(value)} ({_some([str(one) for one in value])})"
        return
    if found := list(_leaves(value)):
        yield f"{name}: " + _some([said if not path else f"{path} {said}" for path, said in found])


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, ``4 → 6``) of all that differs in a tree whose ends are {before, now} or a word."""
    if not isinstance(value, Mapping):
        yield path, _said(value)
    elif set(value) == {"before", "now"}:
        yield from _changed(value["before"], value["now"], path)
    else:
        for key, below in value.items():
            yield from _leaves(below, f"{path} {key}".strip())


def _changed(before: Any, now: Any, path: str) -> Iterator[tuple[str, str]]:
    if before == now:
        return
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*before, *now]):
            yield from _changed(before.get(key), now.get(key), f"{path} {key}".strip())
        return
    yield path, f"{_said(before)} → {_said(now)}"


def _some(parts: Sequence[str]) -> str:
    more = len(parts) - MOST
    return ", ".join(parts[:MOST]) + (f" and {more} more" if more > 0 else "")


def _said(value: Any) -> str:
    """Any JSON value, short."""
    if value is None or value in ([], {}, ""):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return " ".join(_some([f"{key} {_said(one)}" for key, one in value.items()]).split())
    return (
        _some([_said(one) for one in value])
        if isinstance(value, Sequence) and not isinstance(value, str)
        else str(value)
    )
