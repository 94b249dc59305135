"""Boosters → a folder the controller can load, or a refusal: parity comes before the card.

XGBoost → ONNX by onnxmltools, whose converter has been silently wrong for other kinds of model. So the files are loaded
as the controller loads them and compared with XGBoost on real rows, missing values among them.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.forecast.lag_features import FEATURES, Matrix
from leadtime.sources.demand_model import CARD, CARD_SCHEMA, INPUT, load_demand_model, onnx_name
from leadtime.training.demand.quantiles import QUANTILES, QuantileBoosters

OPSET = 15
MOST_DIFFERENCE = 1e-5  # of the logarithm of demand ÷ level, so of the demand itself
_DOING = "publishing the demand model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Largest difference between XGBoost and the published files, relative to the demand said, over ``rows`` rows."""

    rows: int
    missing_ratio: float
    largest_ratio: float


def export_onnx(booster: xgboost.Booster) -> bytes:
    """One booster (one quantile, columns f0 … fn) as ONNX: x float32 [rows, features], NaN missing → [rows, 1].

    Equal boosters give equal bytes. Raises DependencyFailed where the converter fails.
    """
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    shape = [(INPUT, FloatTensorType([None, len(FEATURES)]))]
    try:
        converted = convert_xgboost(booster, name="leadtime-demand", initial_types=shape, target_opset=OPSET)
    except (RuntimeError, ValueError, KeyError) as error:
        raise DependencyFailed(
            "onnx-export-failed", _DOING, f"onnxmltools cannot convert it ({error})",
            "install the onnxmltools of the extra 'train'",
        ) from None  # fmt: skip
    return bytes(converted.SerializeToString())


def publish(folder: Path, reader: QuantileBoosters, card: Mapping[str, Any], rows: Matrix) -> Parity:
    """Write the files and, if they agree with ``reader`` on ``rows`` within 1e-5, the card; then swap ``folder``.

    ``card``: what is to be said of the model beside schema, features, quantiles, files and parity. ``rows`` (n,
    len(FEATURES)): real ones. Without agreement nothing is left and an earlier model stays: raises DependencyFailed
    naming the difference; BadTrace without a row.
    """
    if not len(rows):
        raise BadTrace("parity-no-rows", _DOING, "there are no rows to compare it on", "name histories with demand")
    staged = folder.with_name(f".{folder.name}-unfinished")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    try:
        parity = _write(staged, reader, card, rows)
        _swap(staged, folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return parity


def _write(folder: Path, reader: QuantileBoosters, card: Mapping[str, Any], rows: Matrix) -> Parity:
    files = {}
    for quantile, booster in zip(QUANTILES, reader.boosters, strict=True):
        content = export_onnx(booster)
        (folder / onnx_name(quantile)).write_bytes(content)
        files[onnx_name(quantile)] = hashlib.sha256(content).hexdigest()
    known = {"schema": CARD_SCHEMA, "quantiles": list(QUANTILES), "features": list(FEATURES), "files": files}
    _write_json(folder / CARD, {**card, **known})
    parity = compare(folder, reader, rows)
    said = {"rows": parity.rows, "missing_ratio": parity.missing_ratio, "largest_ratio": parity.largest_ratio}
    _write_json(folder / CARD, {**card, **known, "parity": said})
    return parity


def compare(folder: Path, reader: QuantileBoosters, rows: Matrix) -> Parity:
    """Ask the files in ``folder`` and ``reader`` about ``rows``. Raises DependencyFailed above 1e-5."""
    served, own = load_demand_model(folder, FEATURES)(rows), reader(rows)
    largest = float(np.abs(np.expm1(served - own)).max())
    if not largest <= MOST_DIFFERENCE:
        raise DependencyFailed(
            "demand-model-parity", _DOING,
            f"ONNX and XGBoost differ by {largest:.1e} of the demand on {len(rows)} rows, more than 1e-5",
            "do not use it; install the onnxmltools of the extra 'train'",
        )  # fmt: skip
    return Parity(rows=len(rows), missing_ratio=float(np.isnan(rows).mean()), largest_ratio=largest)


def _swap(staged: Path, folder: Path) -> None:
    """Put the finished folder in the place of an earlier one: at any moment one of them is whole."""
    before = folder.with_name(f".{folder.name}-before")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    staged.rename(folder)
    shutil.rmtree(before, ignore_errors=True)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
