"""A policy file (YAML or JSON) → Policy, or every problem in it at once: which field, what it holds, what it must be.

A threshold that is misspelt, out of bounds or at odds with another is never ignored and never clamped.
"""

import difflib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from leadtime.domain.errors import BadPolicy
from leadtime.policy import rules
from leadtime.policy.fields import ThresholdField, all_fields, plain, sections
from leadtime.policy.schema import Policy

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 100_000
SHOWN = 60
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)")
_UNIT_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProblem:
    """One thing wrong in a policy: the threshold (or rule) it is about, what is wrong, what to write instead."""

    about: str
    wrong: str
    cure: str


class PolicyRefused(BadPolicy):
    """A policy file with problems, all of them in ``problems``; the message tells them in one line."""

    def __init__(self, path: str, problems: tuple[PolicyProblem, ...]) -> None:
        if len(problems) == 1:
            wrong, cure = problems[0].wrong, problems[0].cure
        else:
            told = " · ".join(f"{problem.wrong}; {problem.cure}" for problem in problems)
            wrong, cure = f"{len(problems)} problems: {told}", "'leadtime policy explain FIELD' says what each may be"
        super().__init__("policy-refused", f"loading policy {path}", wrong, cure)
        self.problems = problems


def load_policy(path: Path | str | None) -> Policy:
    """Read and check a policy file; None gives the default policy.

    Raises PolicyRefused listing every problem, BadPolicy when the file cannot be read as YAML or JSON.
    """
    if path is None:
        return Policy()
    content = _content(Path(path))
    problems = list(_shape_problems(content))
    try:
        policy = Policy.model_validate(_without(content, {problem.about for problem in problems}))
    except ValidationError as error:
        problems += _bound_problems(error)
    else:
        problems += _zone_problems(policy)
    if problems:
        raise PolicyRefused(str(path), tuple(problems))
    broken = rules.broken(policy)
    if broken:
        raise PolicyRefused(str(path), tuple(_rule_problem(one) for one in broken))
    return policy


def _content(path: Path) -> dict[str, Any]:
    """The file as nested mappings. Raises BadPolicy."""
    doing = f"loading policy {path}"
    try:
        if not path.is_file():
            raise BadPolicy("policy-file-absent", doing, "there is no such file", "check the path given with --policy")
        if path.stat().st_size > MAX_BYTES:
            raise BadPolicy("policy-unreadable", doing, "it is larger than 100 kB", "a policy is a page of YAML")
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text, object_pairs_hook=_no_twins) if path.suffix == ".json" else _from_yaml(text)
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise BadPolicy(
            "policy-unreadable", doing, f"it cannot be read ({reason})", "give a YAML or JSON file"
        ) from None
    except ValueError as error:
        raise BadPolicy("policy-unreadable", doing, f"it is neither YAML nor JSON: {error}", "mend the line") from None
    if content is None:
        raise BadPolicy("policy-empty", doing, "it holds nothing", "write 'version: 1' for the default policy")
    if not isinstance(content, dict):
        raise BadPolicy(
            "policy-unreadable",
            doing,
            f"it holds {_shown(content)}, not sections",
            "begin with a section such as scaling:",
        )
    return content


def _from_yaml(text: str) -> Any:
    """Safe YAML; a key written twice is an error. Raises ValueError with the line."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Plain values only."""

    def mapping(loader: "yaml.SafeLoader", node: "yaml.MappingNode") -> dict[Any, Any]:
        for number, (key, _) in enumerate(node.value):
            if any(key.value == earlier.value for earlier, _ in node.value[:number]):
                raise ValueError(f"line {key.start_mark.line + 1}: {_shown(key.value)} stands there twice")
        loader.flatten_mapping(node)
        return loader.construct_mapping(node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        return yaml.load(text, Loader)  # Loader is a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        raise ValueError(f"{line}{error.problem or 'not readable'}") from None
    except (yaml.YAMLError, TypeError) as error:  # TypeError: a key that is itself a list or mapping
        raise ValueError(str(error).splitlines()[0]) from None


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key written twice is an error."""
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"{_shown(key)} stands there twice")
        seen[key] = value
    return seen


def _without(content: Mapping[Any, Any], refused: set[str]) -> dict[str, Any]:
    """What is left to be checked for bounds once names and kinds have been refused."""
    return {
        section: {name: value for name, value in values.items() if f"{section}.{name}" not in refused}
        if isinstance(values, dict)
        else values
        for section, values in content.items()
        if str(section) not in refused
    }


def _shape_problems(content: Mapping[Any, Any]) -> tuple[PolicyProblem, ...]:
    """Names that do not exist, sections that are no sections, and values of a kind pydantic would bend into shape."""
    known = {field.path: field for field in all_fields()}
    problems = []
    for section, values in content.items():
        if section == "version":
            continue
        if section not in sections():
            problems.append(_unknown(str(section), [*sections(), "version"], [field.path for field in known.values()]))
        elif not isinstance(values, dict):
            wrong = f"{section} is {_shown(values)}, must be a section of thresholds"
            cure = "write its thresholds under it; 'leadtime policy show' lists them"
            problems.append(PolicyProblem(about=section, wrong=wrong, cure=cure))
        else:
            for name, value in values.items():
                field = known.get(f"{section}.{name}")
                if field is None:
                    names = [one.name for one in known.values() if one.section == section]
                    problems.append(_unknown(f"{section}.{name}", names, list(known)))
                elif field.is_number and not _is_finite_number(value):
                    problems.append(_bad_value(field, value))
    return tuple(problems)


def _is_finite_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _unknown(path: str, names: list[str], everywhere: list[str]) -> PolicyProblem:
    """A name that does not exist, with the nearest that does: in its section first, then anywhere by its last part."""
    name = path.rpartition(".")[2]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        cure = f"did you mean {near[0]}?"
    else:
        elsewhere = [one for one in everywhere if one.endswith(f".{name}")]
        by_last = {one.rpartition(".")[2]: one for one in everywhere}
        elsewhere += [by_last[one] for one in difflib.get_close_matches(name, list(by_last), n=1, cutoff=0.6)]
        cure = f"did you mean {elsewhere[0]}?" if elsewhere else "'leadtime policy show' lists every threshold"
    return PolicyProblem(about=path, wrong=f"there is no {path}", cure=cure)


def _zone_problems(policy: Policy) -> tuple[PolicyProblem, ...]:
    """A zone nobody knows; the schema reads no time zone files, so it cannot tell."""
    name = policy.forecast.time_zone
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        wrong = f"forecast.time_zone is {_shown(name)}, which is no time zone known here"
        return (
            PolicyProblem(about="forecast.time_zone", wrong=wrong, cure="write a name such as Europe/Berlin or UTC"),
        )
    return ()


def _bound_problems(error: ValidationError) -> tuple[PolicyProblem, ...]:
    """pydantic's findings in our words."""
    known = {field.path: field for field in all_fields()}
    problems: dict[str, PolicyProblem] = {}
    for found in error.errors(include_url=False):
        path = ".".join(str(part) for part in found["loc"][:2])
        field = known.get(path)
        if field is not None:
            problems.setdefault(path, _bad_value(field, found["input"]))
        else:
            wrong = f"{path} is {_shown(found['input'])}, must be 1" if path == "version" else f"{path}: {found['msg']}"
            problems.setdefault(path, PolicyProblem(about=path, wrong=wrong, cure="write version: 1"))
    return tuple(problems.values())


def _bad_value(field: ThresholdField, value: object) -> PolicyProblem:
    """A value out of bounds or of the wrong kind, with the likely meaning as cure."""
    unit = f" ({field.unit})" if field.unit else ""
    return PolicyProblem(
        about=field.path,
        wrong=f"{field.path} is {_shown(value)}{unit}, must be {_kind(field)}",
        cure=_cure(field, value),
    )


def _kind(field: ThresholdField) -> str:
    return f"a whole number {field.bounds}" if field.kind is int else field.bounds


def _cure(field: ThresholdField, value: object) -> str:
    """What the writer probably meant."""
    if field.is_number and _is_finite_number(value):
        number = float(value)  # type: ignore[arg-type]  # _is_finite_number has looked
        if (field.name.endswith("_ratio") or field.unit.startswith("share")) and field.allows(number / 100):
            return f"write {number / 100:.2f} for {number:g} %"
    duration = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if duration is not None and field.unit == "s":
        seconds = float(duration[1]) * _UNIT_S[duration[2]]
        if field.allows(seconds):
            return f"write {plain(seconds)}, the seconds in {value}"
    if field.kind is bool:
        return "write true or false without quotes"
    return f"write {plain(field.default)}, the default, or another value within the bounds"


def _rule_problem(one: rules.BrokenRule) -> PolicyProblem:
    return PolicyProblem(
        about=one.rule.id, wrong=f"{one.values}, against rule {one.rule.id}: {one.rule.sentence.rstrip('.')}",
        cure=one.rule.cure,
    )  # fmt: skip


def _shown(value: object) -> str:
    """A value as written, short."""
    text = plain(value) if isinstance(value, bool | int | float | list | tuple) else repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
