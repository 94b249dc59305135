"""Where machine shapes and request sizes come from: the public figures of a cell where given, else a built-in summary.

Figures: Google ClusterData 2019 (CC-BY 4.0). CPU and memory are shares of the largest machine.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from leadtime.domain.errors import BadTrace

SHAPES_FILE = "machine_shapes.csv"
REQUESTS_FILES = "requests_cell_*.parquet"
BUILT_IN = "built-in summary"
SMALLEST_REQUEST = 1e-4  # requests of exactly zero are drawn by a knob of their own
_SHARES = (
    (1.0, 1.0, 0.09),
    (1.0, 0.5, 0.2),
    (0.71, 0.33, 0.3),
    (0.59, 0.17, 0.16),
    (0.48, 0.25, 0.1),
    (0.26, 0.17, 0.15),
)  # fmt: skip; cpus, memory, weight
_LOG_CPU = (-4.8, 0.9)  # mean and standard deviation of ln(cpus): median 0.8 % of the largest machine
_LOG_MEMORY = (-6.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """``machines`` [n, (cpus, memory)] with ``weights`` [n] summing to 1; ``requests`` [m, (cpus, memory)] or None."""

    machines: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    requests: npt.NDArray[np.float64] | None
    source: str

    def draw_machines(self, rng: np.random.Generator, number: int) -> npt.NDArray[np.float64]:
        """[number, (cpus, memory)]."""
        return self.machines[rng.choice(len(self.machines), size=number, p=self.weights)]

    def draw_requests(self, rng: np.random.Generator, number: int) -> npt.NDArray[np.float64]:
        """[number, (cpus, memory)], each moved by up to 5 % so that no two collections ask for exactly the same."""
        moved = rng.uniform(0.95, 1.05, (number, 2))
        if self.requests is not None:
            drawn = self.requests[rng.integers(0, len(self.requests), number)]
        else:
            noise = rng.standard_normal((number, 2))
            log = np.stack([_LOG_CPU[0] + _LOG_CPU[1] * noise[:, 0], _LOG_MEMORY[0] + _LOG_MEMORY[1] * noise[:, 1]], 1)
            drawn = np.exp(log)
        return np.clip(drawn * moved, SMALLEST_REQUEST, 0.5)


def shapes(cell: str, folder: Path | None) -> Shapes:
    """Shapes of ``cell`` from ``folder`` (machine_shapes.csv, requests_cell_<c>.parquet); the summary without one.

    A cell the files do not know draws from all cells. Raises BadTrace ``shapes-unreadable`` for broken files.
    """
    if folder is None or not (folder / SHAPES_FILE).is_file():
        table = np.array(_SHARES)
        return Shapes(machines=table[:, :2], weights=table[:, 2] / table[:, 2].sum(), requests=None, source=BUILT_IN)
    try:
        seen = pl.read_csv(folder / SHAPES_FILE)
        own = seen.filter(pl.col("cell") == cell)
        machines = (own if own.height else seen).select("cpus", "memory", "machine_count").to_numpy().astype(np.float64)
        files = sorted(folder.glob(REQUESTS_FILES))
        files = [file for file in files if file.stem.endswith(f"_{cell}")] or files
        sizes = [pl.read_parquet(file, columns=["cpus", "memory"]).drop_nulls().to_numpy() for file in files]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadTrace(
            "shapes-unreadable", f"reading machine shapes in {folder.name}", str(error).splitlines()[0],
            "repair the files, or unset LEADTIME_DATA_DIR to draw from the built-in summary",
        ) from None  # fmt: skip
    machines = machines[machines[:, 2] > 0]
    return Shapes(
        machines=machines[:, :2], weights=machines[:, 2] / machines[:, 2].sum(),
        requests=np.concatenate(sizes) if sizes else None,
        source=f"borg-2019 figures, cell {cell if own.height else 'all'}",
    )  # fmt: skip
