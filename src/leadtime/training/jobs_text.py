"""Measures of a job-level run → the plain text a terminal shows: the verdict first, each number beside its base."""

from collections.abc import Iterator, Mapping
from typing import Any

Fields = Mapping[str, Any]
FEW_GROUPS = 20  # a bootstrap over fewer says little of the spread
SLACK = 0.05  # of coverage; more than that is said


def jobs_text(metrics: Fields) -> str:
    """``metrics`` as in metrics.json → text, one fact a line."""
    lines = [*_outcome(metrics["outcome"], metrics), ""]
    lines += _waits(metrics["queue_time"]) if metrics["queue_time"] else ["queue time: left out"]
    return "\n".join(lines) + "\n"


def _outcome(told: Fields, metrics: Fields) -> Iterator[str]:
    against = told["floors"][told["against"]]
    verdict = "a gain over" if told["is_gain"] else "no gain over"
    yield (
        f"outcome: {verdict} {told['against']}: the model's average precision is "
        f"{told['average_precision']:.3f} against {against['average_precision']:.3f} "
        f"(gain {against['gain']:+.3f}, 95 % {_range(against['gain_interval'])})"
    )
    yield (
        f"  a job fails when it ends {', '.join(metrics['failing'])}; base rate {told['base_rate']:.2%} of "
        f"{told['rows']['test']:,} test jobs, lift {_or_dash(told['lift'], '{:.2f}')}, average precision 95 % "
        f"{_range(told['average_precision_interval'])} over {told['drawn_count']} {told['drawn']}"
    )
    if told["drawn_count"] < FEW_GROUPS:
        yield f"  {told['drawn_count']} {told['drawn']} are few to draw from: take the intervals as too narrow"
    if told["drawn"] != "users":
        yield "  these accounts name no users: there is no user's base rate to compare with; equal requests' stands in"
    for name, floor in told["floors"].items():
        yield (
            f"  floor, {name}: {floor['average_precision']:.3f} (model {floor['gain']:+.3f}, 95 % "
            f"{_range(floor['gain_interval'])})"
        )
    top = told["precision_at_top"]
    yield (
        f"  of the {top['share']:.0%} most at risk {top['precision']:.1%} fail: {top['recall']:.1%} of all failures"
    )  # fmt: skip
    yield (
        f"  probabilities: mean p {_or_dash(told['mean_p_over_base_rate'], '{:.2f}')} x base rate, calibration error "
        f"{told['ece']:.3f} (floor's {told['ece_of_floor']:.3f}), Brier {told['brier']:.4f} (base rate's "
        f"{told['brier_of_base_rate']:.4f})"
    )
    if told["new_users"]:
        new = told["new_users"]
        yield (
            f"  users without a past: {new['rows']:,} jobs, average precision "
            f"{_or_dash(new['average_precision'], '{:.3f}')} at base rate {_or_dash(new['base_rate'], '{:.2%}')}"
        )
    for reason, count in told["purged"].items():
        yield f"  left out: {count:,} jobs ({reason})"


def _waits(told: Fields) -> Iterator[str]:
    for name, one in told["quantiles"].items():
        verdict = "a gain over" if one["is_gain"] else "no gain over"
        floor = one["floors"][one["best_floor"]]
        yield (
            f"queue time {name}: {verdict} {one['best_floor']}: the model's pinball loss is {one['pinball_s']:,.0f} s "
            f"against {floor['pinball_s']:,.0f} s (gain {one['gain_s']:+,.0f} s, 95 % "
            f"{_range(one['gain_interval_s'], '{:,.0f}')})"
        )
        yield (
            f"  {_cover(one['coverage'])} of the test jobs wait no longer than it says ({name[1:]} % wanted), floor "
            f"{_cover(floor['coverage'])}"
        )
        low, high = one["coverage"]
        if high < int(name[1:]) / 100 - SLACK or low > int(name[1:]) / 100 + SLACK:
            yield "  it does not hold: waits of the test jobs are not those of the jobs it was tuned on"
    unseen = told["not_seen_to_start"]
    yield (
        f"  {told['rows']['test']:,} test jobs, {unseen['test']:,} never seen to start: counted as waiting longer than "
        f"seen ({unseen['train']:,} of {told['rows']['train']:,} in training)"
    )


def _range(pair: Any, form: str = "{:+.3f}") -> str:
    return "not known" if None in pair else f"{form.format(pair[0])} to {form.format(pair[1])}"


def _cover(pair: Any) -> str:
    low, high = pair
    return f"{low:.1%}" if high - low < 0.0005 else f"{low:.1%} to {high:.1%}"


def _or_dash(value: Any, form: str) -> str:
    return "–" if value is None else form.format(value)
