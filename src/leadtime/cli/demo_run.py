"""What ``leadtime demo`` does: the chosen forms side by side on two processes, then files or a page."""

import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from queue import Empty
from typing import Any, Protocol

from leadtime.cli import console
from leadtime.cli.exits import deaf_children
from leadtime.cli.options import DemoOptions
from leadtime.cli.output import OutputFolder
from leadtime.cli.simulated_policy import simulated_policy
from leadtime.policy.schema import Policy
from leadtime.simulate.demo import demo
from leadtime.simulate.incident import Form
from leadtime.simulate.publish import publish

POLL_S = 0.1


class _Mail(Protocol):
    """The queue through which the playing processes tell how far they are."""

    def put(self, item: tuple[str, str, float]) -> None: ...
    def get(self, block: bool = ..., timeout: float | None = ...) -> tuple[str, str, float]: ...


def run(options: DemoOptions) -> None:
    """Play the forms; write them to ``--out``, or serve them as a page until Ctrl-C."""
    policy = simulated_policy(options.policy_path)
    if not options.headless:
        _refuse_taken_port(options.port)
    forms = tuple(form.value for form in options.forms)
    if options.out is not None:
        with OutputFolder(options.out, forms) as staged:
            reports = _play(options, policy, staged)
        _tell(options, reports)
        if not options.headless:
            _serve(options, options.out)
        return
    with tempfile.TemporaryDirectory(prefix="leadtime-demo-") as folder:
        for form in forms:
            (Path(folder) / form).mkdir()
        _tell(options, _play(options, policy, Path(folder)))
        if not options.headless:
            _serve(options, Path(folder))


def _tell(options: DemoOptions, reports: Mapping[str, Mapping[str, Any]]) -> None:
    if options.json:
        sys.stdout.write(json.dumps(reports, allow_nan=False, ensure_ascii=False) + "\n")
    out = console.stderr()
    for name, report in reports.items():
        console.show_report(out, name, report)
    if options.out is not None:
        forms = next(iter(reports)) if len(reports) == 1 else f"{{{','.join(reports)}}}"
        console.show_written(out, options.out / forms)


def _refuse_taken_port(port: int) -> None:
    """A taken port is said now, not after the forms are played."""
    from leadtime.dashboard.serve import listen

    listen(port).close()


def _serve(options: DemoOptions, folder: Path) -> None:
    from leadtime.dashboard.app import create_app
    from leadtime.dashboard.serve import serve

    ledgers = {form.value: folder / form.value / "ticks.sqlite" for form in options.forms}
    serve(create_app(ledgers, live=False), options.port)


def _play(options: DemoOptions, policy: Policy, folder: Path) -> dict[str, dict[str, Any]]:
    """Play every form into its sub-folder of ``folder``; one alone in this process, several on two."""
    with console.progress_bars(console.stderr()) as bars:
        shown = {form.value: console.Bar(bars, form.value) for form in options.forms}
        if len(options.forms) == 1:
            name = options.forms[0].value
            return {name: _one(name, options, policy, folder, shown[name].note)}
        context = multiprocessing.get_context("spawn")
        with deaf_children():
            manager = context.Manager()
        with manager, ProcessPoolExecutor(2, mp_context=context) as pool:
            mail: _Mail = manager.Queue()
            others = set(multiprocessing.active_children())
            with deaf_children():
                # The longest form first: sizing warm pods takes time.
                running = {
                    form.value: pool.submit(_in_process, form.value, options, policy, folder, mail)
                    for form in reversed(options.forms)
                }
            try:
                _watch(running, mail, shown)
                return {form.value: running[form.value].result() for form in options.forms}
            except BaseException:  # stopped, or one form failed: nobody waits for what is still played
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()
                raise


def _watch(running: Mapping[str, Future[dict[str, Any]]], mail: _Mail, shown: Mapping[str, console.Bar]) -> None:
    """Move the bars until every form is played; a failed one ends the others."""
    while not all(future.done() for future in running.values()):
        failed = [future for future in running.values() if future.done() and future.exception() is not None]
        if failed:
            for future in running.values():
                future.cancel()
            return
        try:
            name, what, share = mail.get(timeout=POLL_S)
        except Empty:
            continue
        shown[name].note(what, share)


def _in_process(name: str, options: DemoOptions, policy: Policy, folder: Path, mail: _Mail) -> dict[str, Any]:
    return _one(name, options, policy, folder, lambda what, share: mail.put((name, what, share)))


def _one(
    name: str, options: DemoOptions, policy: Policy, folder: Path, note: Callable[[str, float], None]
) -> dict[str, Any]:
    made = demo(Form(name), seed=options.seed, vary=options.vary, policy=policy, warm_pods=options.warm_pods or 0)
    return publish(made.replay, made.telling, folder / name, note)
