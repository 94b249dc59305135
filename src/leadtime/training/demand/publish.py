"""Boosters → a folder the controller can load, or a refusal: parity comes before the card.

XGBoost → ONNX by onnxmltools, whose converter has been silently wrong for other kinds of model. So the files are loaded
as the controller loads them and compared with XGBoost on real rows, missing values among them.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.forecast.lag_features import FEATURES, Matrix
from leadtime.sources.demand_model import CARD, CARD_SCHEMA, INPUT, load_demand_model, onnx_name
from leadtime.training.demand.parity import Parity, parity_of
from leadtime.training.demand.quantiles import QUANTILES, QuantileBoosters
from leadtime.training.model_folder import staged, write_json

OPSET = 15
_DOING = "publishing the demand model"


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
    with staged(folder) as unfinished:
        return _write(unfinished, reader, card, rows)


def _write(folder: Path, reader: QuantileBoosters, card: Mapping[str, Any], rows: Matrix) -> Parity:
    files = {}
    for quantile, booster in zip(QUANTILES, reader.boosters, strict=True):
        content = export_onnx(booster)
        (folder / onnx_name(quantile)).write_bytes(content)
        files[onnx_name(quantile)] = hashlib.sha256(content).hexdigest()
    known = {"schema": CARD_SCHEMA, "quantiles": list(QUANTILES), "features": list(FEATURES), "files": files}
    write_json(folder / CARD, {**card, **known})
    parity = compare(folder, reader, rows)
    write_json(folder / CARD, {**card, **known, "parity": parity.said()})
    return parity


def compare(folder: Path, reader: QuantileBoosters, rows: Matrix) -> Parity:
    """Ask the files in ``folder`` and ``reader`` about ``rows``. Raises DependencyFailed above 1e-5."""
    served, own = load_demand_model(folder, FEATURES)(rows), reader(rows)
    return parity_of(
        served, own, maker="XGBoost", missing_ratio=float(np.isnan(rows).mean()), doing=_DOING,
        cure="do not use it; install the onnxmltools of the extra 'train'",
    )  # fmt: skip
