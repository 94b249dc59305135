"""A published model is loaded only when it is what its card says, and calibrates as training does."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.domain.errors import BadTrace
from leadtime.risk.calibration import Calibration, Kind
from leadtime.sources.risk_model import CARD_SCHEMA, calibrated, load_risk_model

MAPS = (
    Calibration(kind=Kind.IDENTITY),
    Calibration(kind=Kind.PLATT, intercept=-1.5, slope=0.7),
    Calibration(kind=Kind.BETA, intercept=0.2, slope=0.9, slope_below=1.3),
    Calibration(kind=Kind.ISOTONIC, knots_from=(-6.0, -2.0, 1.0), knots_to=(-7.0, -2.5, 0.5)),
    Calibration(kind=Kind.ISOTONIC, knots_from=(-3.0,), knots_to=(-4.0,)),
)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.sampled_from(MAPS))
def test_a_map_read_from_the_folder_gives_what_training_fitted(p: list[float], fitted: Calibration) -> None:
    written = json.loads(json.dumps(fitted.to_json()))
    assert calibrated(written, np.asarray(p)) == pytest.approx(fitted.apply(p), abs=1e-12)


def test_a_folder_without_a_card_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match=r"there is no card\.json") as refused:
        load_risk_model(tmp_path)
    assert refused.value.slug == "risk-model-absent"


@pytest.mark.parametrize(
    ("card", "slug"),
    [
        ("{", "risk-card-broken"),
        ("[]", "risk-card-schema"),
        ('{"schema": "leadtime.risk-model/0"}', "risk-card-schema"),
        (json.dumps({"schema": CARD_SCHEMA}), "risk-card-broken"),
        (json.dumps({"schema": CARD_SCHEMA, "files": {}}), "risk-card-broken"),
        (json.dumps({"schema": CARD_SCHEMA, "files": {"model-15.onnx": "00"}}), "risk-file-absent"),
    ],
)
def test_a_card_that_cannot_be_used_is_refused(tmp_path: Path, card: str, slug: str) -> None:
    (tmp_path / "card.json").write_text(card, encoding="utf-8")
    with pytest.raises(BadTrace) as refused:
        load_risk_model(tmp_path)
    assert refused.value.slug == slug


def test_a_file_that_changed_after_publishing_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text("{}", encoding="utf-8")
    card = {"schema": CARD_SCHEMA, "files": {"calibration.json": "0" * 64}}
    (tmp_path / "card.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(BadTrace, match=r"calibration\.json is not the file its card describes") as refused:
        load_risk_model(tmp_path)
    assert refused.value.slug == "risk-file-changed"


def test_loading_needs_neither_xgboost_nor_scikit_learn() -> None:
    script = (
        "import sys, leadtime.sources.risk_model; "
        "print(sorted({'xgboost', 'sklearn', 'polars', 'leadtime.training'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
