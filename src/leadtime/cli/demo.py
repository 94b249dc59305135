"""``leadtime demo``: the incident, side by side, as a page or as files. The work is in ``demo_run``."""

from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli.options import DemoOptions, Form, parse_folder

EXAMPLE = "\b\nExamples:\n  leadtime demo --headless --out out\n  leadtime demo --form recurring --seed 7 --vary"

_Headless = Annotated[bool, typer.Option("--headless", help="Write files and serve no page; needs --out.")]
_Out = Annotated[
    Path | None, typer.Option(parser=parse_folder, metavar="DIR", help="Folder for one sub-folder a form.")
]
_Form = Annotated[Form | None, typer.Option(help="One form of the incident; all three if left out.")]
_Seed = Annotated[int, typer.Option(min=0, help="Which draw; equal seeds give equal bytes.")]
_Vary = Annotated[bool, typer.Option("--vary", help="Draw another day: onset, height, a skipped or a decoy day.")]
_WarmPods = Annotated[int | None, typer.Option(min=0, max=100_000, metavar="N", help="Keep N further pods warm.")]
_Policy = Annotated[Path | None, typer.Option(metavar="FILE", help="Thresholds; 'leadtime policy show' lists them.")]
_Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")]
_Speed = Annotated[float, typer.Option(min=1, max=100_000, help="Simulated seconds per second on the page.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the reports as JSON on stdout.")]


def demo(
    *,
    headless: _Headless = False,
    out: _Out = None,
    form: _Form = None,
    seed: _Seed = 0,
    vary: _Vary = False,
    warm_pods: _WarmPods = None,
    policy: _Policy = None,
    port: _Port = 8321,
    speed: _Speed = 600,
    json: _Json = False,
) -> None:
    """Play the incident: HPA alone, leadtime and the oracle, in step."""
    from leadtime.cli import demo_run

    if headless and out is None and not json:
        raise typer.BadParameter("--headless writes files: say where with --out DIR, or print them with --json")
    options = DemoOptions(
        headless=headless, out=out, forms=tuple(Form) if form is None else (form,), seed=seed, vary=vary,
        warm_pods=warm_pods, policy_path=policy, port=port, speed=speed, json=json,
    )  # fmt: skip
    demo_run.run(options)
