"""How near the forecaster comes to the best possible one: generate → windows → features → train → report, in one table.

Run: python benchmarks/accept_borg.py [--setting ROWS:MU:BASE[:SEED] …] [--profile advanced] [--dir DIR] [--json].
Without settings: 2 M rows at mu 1.5, 2 and 0 with 1 % failures, 8 M rows at mu 1.5 with 0.1 %. Each setting has its own
folder below DIR; a step that is finished there is not done again: the same line continues a run that was stopped.

What must hold of 15 min (the last column names what does not; exit 1 when something does not):

| line | mu >= 1.5 | mu = 0 |
|---|---|---|
| near | AP >= 0.90 AP* | |
| honest | AP <= AP* + 3 SE | AP <= base + 3 SE |
| base | mean p within 10 % of the base rate | the same |
| calibrated | ECE <= 2 ECE of the optimum's scores | the same |

AP*: average precision of the generator's own probabilities on the same rows. SE: over collections.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadtime.domain.errors import LeadtimeError
from leadtime.risk.features import Profile
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs
from leadtime.training.booster import Settings
from leadtime.training.dataset import make_dataset
from leadtime.training.forecaster_dataset import make_forecaster_dataset
from leadtime.training.manifest import read_json, write_json
from leadtime.training.run_folder import read_run
from leadtime.training.train import TrainOptions, train

DEFAULT = ("2000000:1.5:0.01", "2000000:2:0.01", "2000000:0:0.01", "8000000:1.5:0.001")
NEAR, BASE_WITHIN, ECE_TIMES, SE_TIMES = 0.90, 0.10, 2.0, 3.0
STRONG_MU = 1.5
HORIZON = "15"
NAME = "accept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One trace: usage windows, signal in standard deviations, share of rows that fail within 15 min, seed."""

    rows: int
    mu: float
    base_rate: float
    seed: int

    @property
    def name(self) -> str:
        return f"rows-{self.rows}-mu-{self.mu:g}-base-{self.base_rate:g}-seed-{self.seed}"


def setting(text: str) -> Setting:
    """``2000000:1.5:0.01:7`` → a setting; the seed is 0 where it is left out."""
    parts = text.split(":")
    if len(parts) not in {3, 4}:
        raise argparse.ArgumentTypeError(f"{text!r}: write ROWS:MU:BASE or ROWS:MU:BASE:SEED")
    return Setting(
        rows=int(parts[0]), mu=float(parts[1]), base_rate=float(parts[2]), seed=int(parts[3]) if parts[3:] else 0
    )


def told(what: str, done: int, total: int | None, unit: str = "rows") -> None:
    """Progress on one line of stderr."""
    sys.stderr.write(f"\r\x1b[K  {what}: {done:,}{f' of {total:,}' if total else ''} {unit}")
    sys.stderr.flush()


def step(folder: Path, name: str, work: Callable[[], None]) -> float:
    """Do ``work`` unless an earlier run finished it; returns the seconds it took then."""
    record = folder / f"{name}.step.json"
    found = read_json(record)
    if found is None:
        begun = time.perf_counter()
        work()
        found = {"seconds": round(time.perf_counter() - begun, 1)}
        write_json(record, found)
    seconds = float(found["seconds"])
    sys.stderr.write(f"\r\x1b[K  {name}: {seconds:,.0f} s\n")
    return seconds


def measured(one: Setting, root: Path, profile: Profile, threads: int) -> dict[str, Any]:
    """Every step of one setting → its line of the table."""
    folder = root / f"{one.name}-{profile.value}"
    raw, windows, features = folder / "raw", folder / "windows", folder / "features"
    sys.stderr.write(f"{folder.name}\n")

    def make_trace() -> None:
        shutil.rmtree(raw, ignore_errors=True)
        generate(raw, Knobs(rows=one.rows, mu=one.mu, base_rate=one.base_rate, seed=one.seed), progress=told)

    def make_windows() -> None:
        made = make_dataset(raw, windows, progress=told)
        if not made.is_usable:
            sys.exit(f"accept_borg: gates failed on a clean trace: {', '.join(made.failed_gates)}")

    def make_features() -> None:
        make_forecaster_dataset(windows, features, profile=profile, progress=told)

    def make_model() -> None:
        train(
            TrainOptions(
                features=features, name=NAME, settings=Settings(), model_folder=folder / "model",
                run_folder=folder / "run",
                journal=folder / "journal", config=folder / "config.json", threads=threads, unseen_cell=None,
                truth=(raw / "truth" / "truth_rows.parquet",),
                allow=("above-optimum",),  # judged here, in the table
            ),
            told,
        )  # fmt: skip

    steps = {"generate": make_trace, "make-dataset": make_windows, "make-features": make_features, "train": make_model}
    seconds = {name: step(folder, name, work) for name, work in steps.items()}
    return line(one, read_run(folder / "run")) | {"seconds": seconds}


def line(one: Setting, metrics: dict[str, Any]) -> dict[str, Any]:
    """metrics.json of a run → one line of the table with its verdicts."""
    found = metrics["horizons"][HORIZON]
    se = {
        name: (found["intervals"].get(name) or {}).get("se") or 0.0
        for name in ("average_precision", "bayes_average_precision")
    }
    ap, best, base = found["average_precision"], found["bayes_average_precision"], found["base_rate"]
    placebo = one.mu == 0
    highest = base + SE_TIMES * se["average_precision"] if placebo else best + SE_TIMES * se["bayes_average_precision"]
    verdicts = {
        "honest": ap <= highest,
        "base": abs(found["mean_probability"] - base) <= BASE_WITHIN * base,
        "calibrated": found["ece"] <= ECE_TIMES * found["ece_bayes"],
    }
    if one.mu >= STRONG_MU:
        verdicts["near"] = ap >= NEAR * best
    return {
        "rows": one.rows, "mu": one.mu, "asked_base_rate": one.base_rate, "seed": one.seed, "test_rows": found["rows"],
        "positives": found["positives"], "average_precision": ap, "bayes_average_precision": best,
        "share_of_bayes": ap / best if best else None,
        "three_se": SE_TIMES * se["average_precision" if placebo else "bayes_average_precision"],
        "base_rate": base, "mean_probability": found["mean_probability"], "ece": found["ece"],
        "ece_bayes": found["ece_bayes"], "data_hash": metrics["data_hash"], "verdicts": verdicts,
        "passed": all(verdicts.values()),
    }  # fmt: skip


def table(lines: list[dict[str, Any]]) -> str:
    """The lines as Markdown."""
    head = (
        "| rows | mu | seed | failures | AP | AP* | AP/AP* | 3 SE | base rate | mean p / base | ECE | ECE* | verdict |"
    )
    said = [head, "|" + "--:|" * 12 + "---|"]
    for one in lines:
        failed = [name for name, passed in one["verdicts"].items() if not passed]
        verdict = f"fails: {', '.join(failed)}" if failed else f"pass ({', '.join(one['verdicts'])})"
        cells = (
            f"{one['rows']:,}", f"{one['mu']:g}", str(one["seed"]), f"{one['positives']:,}",
            f"{one['average_precision']:.4f}", f"{one['bayes_average_precision']:.4f}", f"{one['share_of_bayes']:.3f}",
            f"{one['three_se']:.4f}", f"{one['base_rate']:.4%}", f"{one['mean_probability'] / one['base_rate']:.3f}",
            f"{one['ece']:.5f}", f"{one['ece_bayes']:.5f}", verdict,
        )  # fmt: skip
        said.append("| " + " | ".join(cells) + " |")
    return "\n".join(said)


def main() -> None:
    about = (__doc__ or "").splitlines()[0]
    asked = argparse.ArgumentParser(description=about)
    asked.add_argument("--setting", type=setting, action="append", metavar="ROWS:MU:BASE[:SEED]", help="repeatable")
    asked.add_argument("--profile", type=Profile, default=Profile.ADVANCED, help="baseline or advanced (default)")
    asked.add_argument("--dir", type=Path, default=Path("accept-borg"), help="where every step's files stay")
    asked.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of XGBoost")
    asked.add_argument("--json", action="store_true", help="print the lines as JSON")
    given = asked.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    lines = []
    for one in given.setting or [setting(text) for text in DEFAULT]:
        try:
            lines.append(measured(one, given.dir, given.profile, given.threads))
        except LeadtimeError as error:
            sys.exit(f"\naccept_borg: {one.name}: {error}")
        write_json(given.dir / "table.json", {"lines": lines})
        (given.dir / "table.md").write_text(table(lines) + "\n", encoding="utf-8")
    print(json.dumps(lines, indent=2) if given.json else table(lines))
    sys.exit(0 if all(one["passed"] for one in lines) else 1)


if __name__ == "__main__":
    main()
