"""Figures of every series → verdicts, the table as Markdown, and what must hold for all together."""

from typing import Any

ERRORS = 2.0
ROOM_RATIO, MINUTE_S = 0.03, 60  # skill is said where the ceiling is so far above naive, on minutes
COVERED = (0.87, 0.93)
WIDTH_SLACK = 1.005  # widths are compared as printed
LEAST_COVERED = 8
LEAST_ORIGINS = 500  # a share of fewer is not known to three points
ABOVE_ANCHOR = 0.10
BAND = (0.32, 0.58)  # published leaders' quantile loss relative to seasonal naive
ANCHOR = {  # skill of a plain LightGBM on level-relative lags, trained once on the first 60 %
    "mongo-01": 0.87, "nasa": 0.27, "twitter": 0.22, "vc6YE": 0.05, "mongo-03": -0.02, "vchbv": -0.03, "vcTJs": -0.04,
    "world-cup": -0.31, "ingress-05": -0.36, "ingress-01": 1.0, "ingress-03": 1.0,
}  # fmt: skip


def judged(line: dict[str, Any]) -> dict[str, Any]:
    """A series' figures with its verdicts; none for a series that was refused."""
    if "refused" in line:
        return line | {"verdicts": {}}
    report = line["report"]
    served, champion = report["served"], report["models"][report["champion"]]
    verdicts: dict[str, bool] = {
        name: _not_below(one["hits_above_naive_ratio"], one["hits_above_naive_error"])
        for name, one in (("hits", served), ("model", champion))
    }
    if served["origins"] >= LEAST_ORIGINS:
        verdicts["cover"] = _between(served["coverage_ratio"])
        if line["last_value_width_ratio"] and served["mean_interval_width_ratio"] is not None:
            verdicts["width"] = served["mean_interval_width_ratio"] <= WIDTH_SLACK * line["last_value_width_ratio"]
    room = report["ceiling_within_10pct_ratio"] - report["naive_within_10pct_ratio"]
    skill, error = _skill(line)
    if room >= ROOM_RATIO and report["step_s"] == MINUTE_S and skill is not None:
        verdicts["skill"] = skill >= -ERRORS * (error or 0.0)
        if line["name"] in ANCHOR:
            verdicts["anchor"] = skill >= ANCHOR[line["name"]] - ERRORS * (error or 0.0)
    if line["more_short"] is not None:
        verdicts["short"] = _not_below(-line["more_short"]["mean"], line["more_short"]["error"])
    return line | {"room": room, "skill": skill, "skill_error": error, "verdicts": verdicts}


def _skill(line: dict[str, Any]) -> tuple[float | None, float | None]:
    """Skill of what was served and its standard error; also where the room is small, to be shown in brackets."""
    report = line["report"]
    above, error = (report["served"][f"hits_above_naive_{key}"] for key in ("ratio", "error"))
    room = report["ceiling_within_10pct_ratio"] - report["naive_within_10pct_ratio"]
    if above is None or room <= 0:
        return None, None
    return above / room, None if error is None else error / room


def _not_below(mean: float | None, error: float | None) -> bool:
    """Not below 0 by more than two standard errors; without an error not below 0 at all."""
    return mean is None or mean >= -ERRORS * (error or 0.0) - 1e-12


def _between(ratio: float | None) -> bool:
    return ratio is not None and COVERED[0] <= ratio <= COVERED[1]


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What must hold for all together, over the lines that are there."""
    told = [one for one in lines if one["verdicts"]]
    anchored = [one for one in told if "anchor" in one["verdicts"]]
    skills = [one["skill"] for one in anchored]
    covered = [
        one["name"] for one in told
        if one["verdicts"].get("cover") and _between(one["covered_after_shifts_ratio"])
    ]  # fmt: skip
    ours = sum(skills) / len(skills) if skills else None
    theirs = sum(ANCHOR[one["name"]] for one in anchored) / len(anchored) if anchored else None
    found: dict[str, Any] = {
        "series": len(told), "refused": [one["name"] for one in lines if "refused" in one],
        "mean_skill": ours, "anchor_mean_skill": theirs, "covered_also_after_shifts": covered,
        "rivals": _against(told),
    }  # fmt: skip
    verdicts = {"covered": len(covered) >= LEAST_COVERED}
    if ours is not None and theirs is not None:
        verdicts["mean skill"] = ours >= theirs + ABOVE_ANCHOR
    verdicts |= {f"ahead of {name}": one["served_above"] > 0 for name, one in found["rivals"].items()}
    return found | {"verdicts": verdicts}


def _against(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Per rival: series it answered on, mean difference of hits, series won and lost by more than two errors."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in lines for name in one["rivals"]):
        said = [one["rivals"][name]["served_above"] for one in lines if "served_above" in one["rivals"].get(name, {})]
        if said:
            sure = [(one["mean"], ERRORS * one["error"]) for one in said if one["error"] is not None]
            found[name] = {
                "series": len(said), "served_above": sum(one["mean"] for one in said) / len(said),
                "won": sum(mean > error for mean, error in sure), "lost": sum(mean < -error for mean, error in sure),
            }  # fmt: skip
    return found


HEAD = (
    "series", "champion", "at the lead", "naive", "served", "± SE", "ceiling", "skill", "LightGBM", "short",
    "last value", "inside", "after shifts", "width", "around last value", "loss ÷ seasonal", "CPU s", "verdict",
)  # fmt: skip


def table(lines: list[dict[str, Any]]) -> str:
    """The lines, then what holds for all together, as Markdown."""
    said = ["| " + " | ".join(HEAD) + " |", "|---|---|---|" + "--:|" * (len(HEAD) - 4) + "---|"]
    said += ["| " + " | ".join(_cells(one)) + " |" for one in lines]
    whole = summary(lines)
    said += ["", *(f"- {name}: {'holds' if holds else 'MISSED'}" for name, holds in whole["verdicts"].items())]
    said += [
        f"- mean skill {_number(whole['mean_skill'])} against {_number(whole['anchor_mean_skill'])} + {ABOVE_ANCHOR}"
    ]
    said += [f"- covered, also after level shifts: {', '.join(whole['covered_also_after_shifts']) or 'none'}"]
    said += [
        f"- {name}: served {100 * one['served_above']:+.1f} points on {one['series']} series, won {one['won']}, "
        f"lost {one['lost']} by more than 2 SE" for name, one in whole["rivals"].items()
    ]  # fmt: skip
    return "\n".join(said) + "\n"


def _cells(line: dict[str, Any]) -> tuple[str, ...]:
    if "refused" in line:
        return (line["name"], *["–"] * (len(HEAD) - 2), f"refused: {line['refused']}")
    report = line["report"]
    served, last = report["served"], report["models"]["last_value"]
    failed = [name for name, holds in line["verdicts"].items() if not holds]
    anchor = ANCHOR.get(line["name"])
    small = line["room"] < ROOM_RATIO
    return (
        line["name"], report["champion"], report["lead_champion"] + ("" if report["acts"] else " (does not act)"),
        _share(report["naive_within_10pct_ratio"]), _share(served["within_10pct_ratio"]),
        _share(served["hits_above_naive_error"]), _share(report["ceiling_within_10pct_ratio"]),
        ("(" if small else "") + _number(line["skill"]) + (")" if small else ""), _number(anchor),
        str(served["shortfall_minutes"]), str(last["shortfall_minutes"]), _share(served["coverage_ratio"]),
        _share(line["covered_after_shifts_ratio"]), _number(served["mean_interval_width_ratio"], sign=""),
        _number(line["last_value_width_ratio"], sign=""), _number(served["relative_quantile_loss"], sign=""),
        f"{line['cpu_s']:,.0f}", f"misses {', '.join(failed)}" if failed else "holds",
    )  # fmt: skip


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _number(value: float | None, sign: str = "+") -> str:
    return "–" if value is None else f"{value:{sign}.2f}"
