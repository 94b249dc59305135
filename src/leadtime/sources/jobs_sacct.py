"""``sacct --parsable2`` with its header → canonical jobs: steps folded, sizes and limits in one unit, one clock.

Field meanings: Slurm's sacct manual page. Steps (``123.batch``, ``123.0``) are part of their job and only counted.
Times without an offset are wall clock of the accounting host: the zone must be named. In the hour that clocks go back
the first of the two is meant (sacct does not tell them apart). ``Unknown``, ``None``, ``N/A`` and empty are missing.
"""

import re
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from leadtime.domain.jobs import Outcome
from leadtime.sources.jobs_frame import Jobs, bad_jobs, canonical, require

STATES = {
    "BOOT_FAIL": Outcome.NODE_FAILED, "CANCELLED": Outcome.CANCELLED, "COMPLETED": Outcome.COMPLETED,
    "COMPLETING": Outcome.RUNNING, "CONFIGURING": Outcome.RUNNING, "DEADLINE": Outcome.TIMEOUT,
    "FAILED": Outcome.FAILED, "LAUNCH_FAILED": Outcome.FAILED, "NODE_FAIL": Outcome.NODE_FAILED,
    "OUT_OF_MEMORY": Outcome.OUT_OF_MEMORY, "PENDING": Outcome.PENDING, "PREEMPTED": Outcome.NODE_FAILED,
    "RECONFIG_FAIL": Outcome.NODE_FAILED, "REQUEUED": Outcome.PENDING, "REQUEUE_FED": Outcome.PENDING,
    "REQUEUE_HOLD": Outcome.PENDING, "RESIZING": Outcome.RUNNING, "RESV_DEL_HOLD": Outcome.PENDING,
    "REVOKED": Outcome.UNKNOWN, "RUNNING": Outcome.RUNNING, "SIGNALING": Outcome.RUNNING,
    "SPECIAL_EXIT": Outcome.FAILED, "STAGE_OUT": Outcome.RUNNING, "STOPPED": Outcome.RUNNING,
    "SUSPENDED": Outcome.RUNNING, "TIMEOUT": Outcome.TIMEOUT,
}  # fmt: skip
REQUIRED = ("JobID", "User", "State", "Submit", "Start", "End")
TIMES = {"Submit": "submitted_s", "Eligible": "eligible_s", "Start": "started_s", "End": "ended_s"}
MISSING = frozenset({"", "Unknown", "None", "N/A", "Partition_Limit", "UNLIMITED", "INVALID"})
CURE = (
    "export with: sacct --allusers --parsable2 --format=JobID,User,Partition,State,ExitCode,Submit,Eligible,Start,End,"
    "Timelimit,ReqCPUS,AllocCPUS,ReqMem,ReqTRES,AllocTRES,NNodes"
)
_LIMIT = re.compile(r"(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+)(?:\.\d+)?")
_SIZE = re.compile(r"(?P<n>\d+(?:\.\d+)?)(?P<u>[KMGTP]?)B?(?P<per>[cn]?)", re.IGNORECASE)
_GPU = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_TYPED_GPU = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
_TRES_MEMORY = re.compile(r"(?:^|,)mem=([^,]+)")
_UNIT = {"": 1024**2, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}  # no letter: MiB


def read_sacct(path: Path, time_zone: str | None) -> Jobs:
    """One row a job. ``time_zone``: IANA name of the accounting host; None where every time carries an offset.

    Raises jobs-unreadable, jobs-column-missing, jobs-row-width, jobs-state-unknown, jobs-time-zone, jobs-time,
    jobs-number, and what ``canonical`` raises.
    """
    header, lines = _table(path)
    require(path, header, REQUIRED, CURE)
    zone = _zone(path, time_zone)
    rows, steps = [], 0
    for number, values in lines:
        told = dict(zip(header, values, strict=True))
        if "." in told["JobID"] or "+" in told["JobID"].partition(".")[2]:
            steps += 1
            continue
        rows.append(_job(path, number, told, zone))
    if not rows:
        raise bad_jobs("jobs-empty", path, f"it holds no job ({steps} steps)", CURE)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    times = [at for row in rows for name in TIMES.values() if isinstance(at := row.get(name), int)]
    return canonical(path, frame, observed_until_s=max(times, default=0), epoch=True, notes={"steps folded": steps})


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise bad_jobs("jobs-unreadable", path, f"it is no text ({error})", CURE) from None
    if not lines or "|" not in lines[0]:
        raise bad_jobs("jobs-unreadable", path, "its first line is no header of columns parted by |", CURE)
    header = [name.strip() for name in lines[0].split("|")]
    rows = [(number, line.split("|")) for number, line in enumerate(lines[1:], start=2) if line.strip()]
    for number, values in rows:
        if len(values) != len(header):
            wrong = f"line {number} has {len(values)} values, the header names {len(header)} columns"
            raise bad_jobs("jobs-row-width", path, wrong, "use --parsable2, and leave out columns of free text")
    return header, rows


def _job(path: Path, line: int, told: dict[str, str], zone: ZoneInfo | None) -> dict[str, object]:
    state = told["State"].split(" ")[0].rstrip("+")
    if state not in STATES:
        known = ", ".join(sorted(STATES))
        raise bad_jobs("jobs-state-unknown", path, f"line {line}: state {told['State']!r}", f"known are {known}")
    times = {name: _instant(path, line, column, told.get(column, ""), zone) for column, name in TIMES.items()}
    if STATES[state] is Outcome.PENDING:
        times["started_s"] = None  # sacct shows an estimate of the start
    if STATES[state] is Outcome.CANCELLED and times["started_s"] == times["ended_s"] and _got_nothing(told):
        times["started_s"] = None  # cancelled while it waited: the wait was longer than seen
    cpus = _number(path, line, "ReqCPUS", told) or _number(path, line, "AllocCPUS", told)
    nodes = _number(path, line, "NNodes", told)
    tres = told.get("ReqTRES") or told.get("AllocTRES") or ""
    told_memory = _TRES_MEMORY.search(tres)
    memory = told_memory[1] if told_memory else told.get("ReqMem", "")
    code = told.get("ExitCode", "").partition(":")[0]
    return {
        "job": told["JobID"], "user": _text(told["User"]), "queue": _text(told.get("Partition", "")),
        "kind": _text(told.get("QOS", "")), "nodes": nodes, "cpus": cpus, "gpus": _gpus(tres),
        "memory_bytes": _bytes(path, line, memory, cpus, nodes),
        "time_limit_s": _limit(path, line, told.get("Timelimit", "")), "outcome": STATES[state].value,
        "exit_code": int(code) if code.isdigit() else None, **times,
    }  # fmt: skip


def _got_nothing(told: dict[str, str]) -> bool:
    """No CPU was ever allocated, as far as the accounts tell."""
    return told.get("AllocCPUS", "0") in {"", "0"} and not told.get("AllocTRES")


def _text(value: str) -> str | None:
    return None if value in MISSING else value


def _zone(path: Path, name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        cure = "write an IANA name such as Europe/Berlin or UTC"
        raise bad_jobs("jobs-time-zone", path, f"time zone {name!r} is not known", cure) from None


def _instant(path: Path, line: int, column: str, text: str, zone: ZoneInfo | None) -> int | None:
    """Seconds since 1970; None where missing. A number is Unix seconds already (SLURM_TIME_FORMAT=%s)."""
    if text in MISSING:
        return None
    if text.isdigit():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        cure = "write ISO 8601 or Unix seconds (unset SLURM_TIME_FORMAT)"
        raise bad_jobs("jobs-time", path, f"line {line}: {column} {text!r} is no time", cure) from None
    if at.tzinfo is not None:
        return int(at.timestamp())
    if zone is None:
        wrong = f"line {line}: {column} {text} has no offset, and no time zone was named"
        raise bad_jobs("jobs-time-zone", path, wrong, "add --time-zone with the zone of the accounting host")
    local = at.replace(tzinfo=zone)
    back = datetime.fromtimestamp(local.timestamp(), zone).replace(tzinfo=None)
    if back != at:
        wrong = f"line {line}: {column} {text} does not exist in {zone.key}: its clocks went forward then"
        raise bad_jobs("jobs-time-zone", path, wrong, "name the zone the accounting host really is in")
    return int(local.timestamp())


def _number(path: Path, line: int, column: str, told: dict[str, str]) -> float | None:
    text = told.get(column, "")
    if text in MISSING or text == "0":  # nothing was allocated yet
        return None
    scale = {"K": 1e3, "M": 1e6}.get(text[-1:].upper(), 1.0)
    try:
        return float(text.rstrip("KMkm")) * scale
    except ValueError:
        raise bad_jobs("jobs-number", path, f"line {line}: {column} {text!r} is no number", CURE) from None


def _gpus(tres: str) -> float | None:
    """GPUs of a TRES list; 0 where the list is there and names none, None where there is no list."""
    if not tres or tres in MISSING:
        return None
    whole = _GPU.search(tres)
    return float(whole[1]) if whole else float(sum(map(int, _TYPED_GPU.findall(tres))))


def _bytes(path: Path, line: int, text: str, cpus: float | None, nodes: float | None) -> float | None:
    """``4000M``, ``4Gn`` (a node), ``4Gc`` (a CPU) → bytes of the whole job; None where missing or 0 (all there is)."""
    if text in MISSING or text.startswith("0"):
        return None
    match = _SIZE.fullmatch(text)
    if match is None:
        raise bad_jobs("jobs-number", path, f"line {line}: memory {text!r} is no size", "write it as 4000M or 4G")
    times = {"c": cpus, "n": nodes, "": 1.0}[match["per"].lower()]
    return None if times is None else float(match["n"]) * _UNIT[match["u"].upper()] * times


def _limit(path: Path, line: int, text: str) -> float | None:
    """``1-12:00:00``, ``30:00`` → seconds."""
    if text in MISSING:
        return None
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise bad_jobs("jobs-number", path, f"line {line}: Timelimit {text!r} is none", "write it as D-HH:MM:SS")
    days, hours, minutes, seconds = (int(match[unit] or 0) for unit in "dhms")
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
