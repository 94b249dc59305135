"""Boosters and calibration → a model folder that the loop can load, or a refusal: parity comes before the card.

XGBoost → ONNX by onnxmltools, whose converter has been silently wrong for other kinds of model. So the files are loaded
as the loop loads them and compared with XGBoost on real rows, missing values among them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.risk.calibration import Calibration, expit, monotone_across_horizons
from leadtime.sources.risk_model import CALIBRATION, CARD, INPUT, OUTPUT, load_risk_model, onnx_name
from leadtime.training import booster as boosters
from leadtime.training.model_folder import staged, write_json
from leadtime.training.sampling import Array

OPSET = 15
MOST_DIFFERENCE = 1e-5  # of a calibrated probability
CALIBRATION_SCHEMA = "leadtime.risk-calibration/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskBoosters:
    """What training hands on: horizon (minutes) → XGBoost model and calibration. Scores as the published files must."""

    boosters: Mapping[int, xgboost.Booster]
    calibrations: Mapping[int, Calibration]

    def uncapped(self, x: Array) -> dict[int, Array]:
        """Calibrated probabilities [rows] by horizon, not yet monotone."""
        return {m: c.apply(expit(boosters.margins(self.boosters[m], x))) for m, c in sorted(self.calibrations.items())}

    def scores(self, x: Array) -> dict[int, Array]:
        """Calibrated probabilities [rows] by horizon, never falling with the horizon."""
        return {m: np.asarray(p) for m, p in monotone_across_horizons(self.uncapped(x)).probabilities.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Largest |Δp| after calibration between XGBoost and the published files, by horizon."""

    rows: int
    missing_ratio: float
    differences: Mapping[int, float]

    @property
    def worst(self) -> float:
        """Over all horizons."""
        return max(self.differences.values())


def export_onnx(model: xgboost.Booster, features: int) -> bytes:
    """One booster (binary:logistic, columns f0 … fn) as ONNX: x float32 [rows, features], NaN missing → probabilities.

    Equal boosters give equal bytes.
    """
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    shape = [(INPUT, FloatTensorType([None, features]))]
    converted = convert_xgboost(model, name="leadtime-risk", initial_types=shape, target_opset=OPSET)
    if OUTPUT not in {output.name for output in converted.graph.output}:
        raise DependencyFailed(
            "onnx-export-failed", "writing the model as ONNX", f"onnxmltools gave no output named {OUTPUT}",
            "install the onnxmltools of the extra 'train'",
        )  # fmt: skip
    return bytes(converted.SerializeToString())


def publish(folder: Path, model: RiskBoosters, card: Mapping[str, Any], rows: Array) -> Parity:
    """Write boosters, calibration, ONNX and, if they agree on ``rows`` within 1e-5, the cards; then swap ``folder``.

    ``card``: all of card.json but ``files`` and ``parity``. ``rows`` [n, features] float32: real rows with missing
    values. Without agreement nothing is left and an earlier model stays: raises DependencyFailed naming the horizon and
    the difference.
    """
    with staged(folder) as unfinished:
        return _write(unfinished, model, card, rows)


def _write(folder: Path, model: RiskBoosters, card: Mapping[str, Any], rows: Array) -> Parity:
    from leadtime.training.model_card import as_markdown

    files: dict[str, str] = {}
    for m, one in sorted(model.boosters.items()):
        boosters.save(one, folder / f"model-{m}.json")
        (folder / onnx_name(m)).write_bytes(export_onnx(one, len(card["features"])))
        files |= {name: _digest(folder / name) for name in (f"model-{m}.json", onnx_name(m))}
    maps = {str(m): c.to_json() for m, c in sorted(model.calibrations.items())}
    write_json(folder / CALIBRATION, {"schema": CALIBRATION_SCHEMA, "horizons": maps})
    files[CALIBRATION] = _digest(folder / CALIBRATION)
    write_json(folder / CARD, {**card, "files": files})
    parity = compare(folder, model, rows)
    said = {"rows": parity.rows, "missing_ratio": parity.missing_ratio, "largest_difference": parity.worst}
    whole = {**card, "parity": said, "files": files}
    (folder / "card.md").write_text(as_markdown(whole), encoding="utf-8")
    write_json(folder / CARD, whole)
    return parity


def compare(folder: Path, model: RiskBoosters, rows: Array) -> Parity:
    """Score ``rows`` with the files in ``folder`` and with ``model``. Raises DependencyFailed above 1e-5, BadTrace
    without a row."""
    if len(rows) == 0:
        raise BadTrace("parity-no-rows", "checking the published model", "there are no rows", "name features with rows")
    served, own = load_risk_model(folder).scores(rows), model.scores(rows)
    differences = {m: float(np.abs(served[m] - own[m]).max()) for m in own}
    for m, difference in differences.items():
        if not difference <= MOST_DIFFERENCE:
            raise DependencyFailed(
                "onnx-parity", f"publishing the {m} min model to {folder}",
                f"ONNX and XGBoost differ by {difference:.2e} in probability on {len(rows)} rows, "
                f"more than {MOST_DIFFERENCE:.0e}", "do not use it; install the onnxmltools of the extra 'train'",
            )  # fmt: skip
    return Parity(rows=len(rows), missing_ratio=float(np.isnan(rows).mean()), differences=differences)


def load_boosters(folder: Path) -> RiskBoosters:
    """The XGBoost side of a published folder: boosters and calibration, for training's own reports."""
    written = json.loads((folder / CALIBRATION).read_text(encoding="utf-8"))["horizons"]
    maps = {int(m): Calibration.from_json(value) for m, value in written.items()}
    models = {m: boosters.load(folder / f"model-{m}.json") for m in maps}
    return RiskBoosters(boosters=models, calibrations=maps)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
