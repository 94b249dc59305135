"""Files of one run → a folder, all of them or none: written to a hidden folder first, moved when everything is there.

A run that fails or is stopped leaves ``DIR`` as it was. An earlier run's files are replaced; files of anybody else are
neither replaced nor touched.
"""

import json
import os
import shutil
from pathlib import Path
from types import TracebackType

from leadtime.domain.errors import WrongUse

REPORT = "report.json"
REPORT_SCHEMA = "leadtime.report/"
PRODUCTS = (REPORT, "report.html", "ticks.sqlite")


class OutputFolder:
    """``with OutputFolder(out, ("recurring", "ramp")) as staged: (staged / "ramp" / "report.json").write_text(…)``.

    ``parts`` are the sub-folders a run writes, ("",) when it writes into ``out`` itself; ``products`` the files it
    writes there, its JSON report first. Entering makes the parts, empty, under ``staged``. Leaving without an exception
    moves every file to its place, reports last: who sees a report sees a finished run. Raises WrongUse on entering when
    ``out`` cannot be used, before anything has been computed.
    """

    def __init__(self, out: Path, parts: tuple[str, ...] = ("",), products: tuple[str, ...] = PRODUCTS) -> None:
        self._out = out
        self._products = products
        self._parts = parts
        self._staged: Path | None = None
        self._made: list[Path] = []

    def __enter__(self) -> Path:
        try:
            for folder in (self._out, *(self._out / part for part in self._parts if part)):
                _refuse_file(folder)
            for part in self._parts:
                _refuse_strangers(self._out / part, self._products)
            self._staged = self._stage()
            for part in self._parts:
                (self._staged / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._clear()
            raise _not_writable(self._out, error) from None
        return self._staged

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._staged is not None:
                _move(self._staged, self._out, self._products[0])
                self._made.clear()
        except OSError as failed:
            raise _not_writable(self._out, failed) from None
        finally:
            self._clear()

    def _stage(self) -> Path:
        """A hidden folder on the same disk: inside ``out`` where it exists, else beside it."""
        if self._out.exists():
            parent, name = self._out, ".leadtime-unfinished"
        else:
            parent, name = self._out.absolute().parent, f".{self._out.name}-unfinished"
            for folder in reversed([parent, *parent.parents]):
                if not folder.exists():
                    folder.mkdir()
                    self._made.append(folder)
        staged = parent / f"{name}-{os.getpid()}"
        staged.mkdir()
        return staged

    def _clear(self) -> None:
        """Take away what this run made and does not leave behind."""
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
        for folder in reversed(self._made):
            if not any(folder.iterdir()):
                folder.rmdir()
        self._made.clear()


def _move(staged: Path, out: Path, report: str) -> None:
    """Every staged file to its place; one rename for the whole folder where there was none."""
    if not out.exists():
        staged.rename(out)
        return
    files = sorted(path.relative_to(staged) for path in staged.rglob("*") if path.is_file())
    for file in sorted(files, key=lambda path: path.name == report):
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (staged / file).replace(out / file)


def _refuse_file(folder: Path) -> None:
    """Raise WrongUse when ``folder``, or a part of the path to it, is a file."""
    for one in (folder, *folder.parents):
        if one.exists() and not one.is_dir():
            wrong = f"{'it' if one == folder else one} is a file"
            raise WrongUse("out-not-a-folder", f"writing to {folder}", wrong, "name a folder with --out")


def _refuse_strangers(folder: Path, products: tuple[str, ...]) -> None:
    """Raise WrongUse when ``folder`` holds files of the names we write that are not an earlier run's."""
    taken = [name for name in products if os.path.lexists(folder / name)]
    if taken and not _is_report(folder / products[0]):
        raise WrongUse(
            "out-not-ours", f"writing to {folder}", f"{taken[0]} is there and no earlier run of leadtime wrote it",
            "name another folder with --out, or take the file away",
        )  # fmt: skip


def _is_report(path: Path) -> bool:
    """True for a report of leadtime, told by its ``schema``; False for anything else."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return False
    return isinstance(report, dict) and str(report.get("schema", "")).startswith(REPORT_SCHEMA)


def _not_writable(out: Path, error: OSError) -> WrongUse:
    return WrongUse(
        "out-not-writable",
        f"writing to {out}",
        error.strerror or str(error),
        "name a folder you may write to with --out",
    )
