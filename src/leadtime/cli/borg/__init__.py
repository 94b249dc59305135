"""``leadtime borg``: from raw shards of a cluster trace to a failure model one can believe. One file a command.

Each file imports typer and option types at the top; the work (and polars, xgboost, …) is imported when it runs.
"""

import typer

from leadtime.cli.borg import (
    check,
    generate,
    import_prometheus,
    jobs,
    leak,
    make_dataset,
    make_forecaster_dataset,
    repair,
    report,
    score,
    train,
    train_baseline,
    tune,
)

app = typer.Typer(
    help="Failure forecasts from Borg-like traces: generate, check, repair, label, train, report.", no_args_is_help=True
)
app.command("generate", epilog=generate.EXAMPLE)(generate.generate)
app.command("check", epilog=check.EXAMPLE)(check.check)
app.command("repair", epilog=repair.EXAMPLE)(repair.repair)
app.command("make-dataset", epilog=make_dataset.EXAMPLE)(make_dataset.make_dataset)
app.command("make-forecaster-dataset", epilog=make_forecaster_dataset.EXAMPLE)(
    make_forecaster_dataset.make_forecaster_dataset
)
app.command("leak", epilog=leak.EXAMPLE)(leak.leak)
app.command("tune", epilog=tune.EXAMPLE)(tune.tune)
app.command("train", epilog=train.EXAMPLE)(train.train)
app.command("score", epilog=score.EXAMPLE)(score.score)
app.command("train-baseline", epilog=train_baseline.EXAMPLE)(train_baseline.train_baseline)
app.command("report", epilog=report.EXAMPLE)(report.report)
app.command("jobs", epilog=jobs.EXAMPLE)(jobs.jobs)
app.command("import-prometheus", epilog=import_prometheus.EXAMPLE)(import_prometheus.import_prometheus)
