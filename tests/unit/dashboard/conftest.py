"""The hand-drawn ledger, written once a session."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """tests/unit/dashboard/synthetic_ledger.py."""
    return _load("synthetic_ledger")


@pytest.fixture(scope="session")
def incident_ledger(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished ledger: 03:00 to 09:00, with its report."""
    return synthetic.write_ledger(tmp_path_factory.mktemp("ledger") / "recurring.sqlite")
