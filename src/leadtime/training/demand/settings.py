"""How the trees of the learned demand model are grown: one set for all workloads."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How trees are grown; names are XGBoost's. ``patience``: rounds without a gain. One set for all workloads."""

    rounds: int = 400
    patience: int = 30
    eta: float = 0.05
    max_depth: int = 4
    min_child_weight: float = 50.0  # rows in a leaf: the loss has a constant second derivative
    subsample: float = 0.7
    colsample_bytree: float = 0.8
    reg_lambda: float = 5.0
    max_bin: int = 64

    def parameters(self, quantile: float, *, seed: int, threads: int) -> dict[str, Any]:
        """As ``xgboost.train`` takes them."""
        grown = {name: getattr(self, name) for name in self.__slots__ if name not in {"rounds", "patience"}}
        fixed = {"objective": "reg:quantileerror", "quantile_alpha": quantile, "tree_method": "hist", "verbosity": 0}
        return {**grown, **fixed, "seed": seed, "nthread": threads}
