"""What the policy commands print: text for people, JSON for pipes. The answers come from the policy room."""

import json
import re
from pathlib import Path

import typer

from leadtime.policy import explain as explain_policy
from leadtime.policy import reach
from leadtime.policy.fields import all_fields, plain, value_of
from leadtime.policy.files import PolicyRefused, load_policy
from leadtime.policy.schema import Policy

DEFAULT = Policy()
OPTIONS = {  # the numbers of a workload as the reader gives them
    "min_replicas": "--min",
    "max_replicas": "--max",
    "capacity_per_pod": "--capacity-per-pod",
    "hpa_target_ratio": "--hpa-target",
    "peak_demand": "--peak",
    "low_demand": "--low",
    "pods_now": "--pods-now",
    "node_lead_s": "--node-lead",
    "pod_lead_s": "--pod-lead",
    "highest_utilisation_ratio": "--highest-utilisation",
}


def check(file: Path, numbers: reach.WorkloadNumbers, *, as_json: bool) -> bool:
    """Print the findings about ``file``; True when one is harmful.

    Raises PolicyRefused for a policy that breaks a bound or a rule, after printing its problems one a line.
    """
    try:
        policy = load_policy(file)
    except PolicyRefused as refused:
        _print_problems(refused, as_json=as_json)
        raise
    report = reach.check(policy, numbers)
    harmful = any(finding.harmful for finding in report.findings)
    if as_json:
        findings = [
            {"threshold": one.threshold, "reach": one.reach.value, "harmful": one.harmful, "sentence": one.sentence,
             "cure": one.cure}
            for one in report.findings
        ]  # fmt: skip
        answer = {"policy_hash": policy.hash, "problems": [], "findings": findings, "not_checked": report.not_checked}
        _print_json(answer)
        return harmful
    changed = sum(value_of(policy, field.path) != value_of(DEFAULT, field.path) for field in all_fields())
    typer.echo(f"{file}: well-formed, {changed} of {len(all_fields())} thresholds differ from the default")
    for one in report.findings:
        typer.echo(f"{'!' if one.harmful else '·'} {one.threshold}, {one.reach.value}: {one.sentence}; {one.cure}")
    if report.not_checked:
        typer.echo(f"not checked: {_with_options('; '.join(report.not_checked))}")
    return harmful


def _with_options(text: str) -> str:
    """``needs peak_demand`` → ``needs --peak``."""
    return re.sub(r"\w+", lambda word: OPTIONS.get(word[0], word[0]), text)


def _print_problems(refused: PolicyRefused, *, as_json: bool) -> None:
    """Each problem where a reader or a pipe looks for it; the one line on stderr is printed where errors end."""
    if as_json:
        problems = [{"about": one.about, "wrong": one.wrong, "cure": one.cure} for one in refused.problems]
        _print_json({"policy_hash": None, "problems": problems, "findings": [], "not_checked": []})
    elif len(refused.problems) > 1:
        for one in refused.problems:
            typer.echo(f"! {one.wrong}; {one.cure}")


def show(file: Path | None, *, as_json: bool) -> None:
    """Print every threshold of ``file``, or of the default policy. Raises BadPolicy."""
    policy = load_policy(file)
    if as_json:
        rows = {
            field.path: {"value": _json_value(value_of(policy, field.path)), "unit": field.unit or None,
                         "default": _json_value(field.default),
                         "changed": value_of(policy, field.path) != value_of(DEFAULT, field.path)}
            for field in all_fields()
        }  # fmt: skip
        _print_json({"policy_hash": policy.hash, "thresholds": rows})
        return
    typer.echo(f"policy {policy.hash}{'' if file is None else f' from {file}'}")
    width = max(len(field.name) for field in all_fields())
    section = ""
    for field in all_fields():
        if field.section != section:
            section = field.section
            typer.echo(f"{section}:")
        value = value_of(policy, field.path)
        standing = "default" if value == value_of(DEFAULT, field.path) else f"changed, default {plain(field.default)}"
        unit = f" {field.unit}" if field.unit else ""
        typer.echo(f"  {field.name:<{width}}  {plain(value)}{unit}  ({standing})")


def explain(path: str, *, as_json: bool) -> None:
    """Print all there is to say about one threshold. Raises BadPolicy for an unknown one."""
    told = explain_policy.explain(path)
    field = told.field
    if as_json:
        _print_json(
            {"field": field.path, "unit": field.unit or None, "bounds": field.bounds,
             "default": _json_value(field.default), "why": field.why,
             "effects": [{"value": one.value, "does": one.does} for one in told.effects],
             "rules": [{"id": rule.id, "holds": rule.holds, "sentence": rule.sentence} for rule in told.touched_by]}
        )  # fmt: skip
        return
    unit = f" {field.unit}" if field.unit else ""
    typer.echo(
        f"{field.path}\n  default  {plain(field.default)}{unit}\n  bounds   {field.bounds}\n  why      {field.why}"
    )
    typer.echo("  effect")
    width = max(len(one.value) for one in told.effects)
    for one in told.effects:
        mark = " (default)" if one.value == plain(field.default) else ""
        typer.echo(f"    {one.value:>{width}}  {one.does}{mark}")
    for rule in told.touched_by:
        typer.echo(f"  rule {rule.id}: {rule.holds}\n    {rule.sentence}")


def _json_value(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _print_json(answer: object) -> None:
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
