"""Commands that need an extra say so in one line instead of a traceback."""

from importlib.util import find_spec

from leadtime.domain.errors import DependencyFailed

NEEDED = {
    "polars": "train", "xgboost": "train", "sklearn": "train", "optuna": "train", "onnxmltools": "train",
    "onnxruntime": "risk", "ray": "ray", "httpx2": "train",
}  # fmt: skip


def need(doing: str, *modules: str) -> None:
    """Raise DependencyFailed when one of ``modules`` is not installed, naming the extra that brings it."""
    absent = [module for module in modules if find_spec(module) is None]
    if absent:
        extras = ",".join(sorted({NEEDED[module] for module in absent}))
        raise DependencyFailed(
            "extra-not-installed", doing, f"{', '.join(absent)} is not installed",
            f"install it with: pip install 'leadtime[{extras}]'",
        )  # fmt: skip
