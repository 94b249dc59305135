"""Arguments → one command → exit code. Errors become one line on stderr: ``leadtime: <message> [slug]``.

Exit codes: 0 done · 1 done, but it found something (``policy check``) · 2 the user can mend it · 3 something leadtime
needs failed, or a defect in leadtime · 130 stopped by Ctrl-C, 143 by SIGTERM. LEADTIME_DEBUG=1 shows the traceback of
a defect.
"""

import os
import re
import sys
from collections.abc import Sequence

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError  # typer carries click, re-exports neither

from leadtime.cli.exits import STOPPED_EXIT, say_stopped
from leadtime.domain.errors import LeadtimeError

USAGE_EXIT = 2
DEFECT_EXIT = 3
_PLAIN = (  # the parser's own words → a person's
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer.*"), "it must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "it must be a number"),
    (re.compile(r"Input should be greater than or equal to "), "it must be at least "),
    (re.compile(r"Input should be less than or equal to "), "it must be at most "),
)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return the exit code; only with LEADTIME_DEBUG=1 does a defect propagate."""
    from leadtime.cli.app import app

    try:
        code = typer.main.get_command(app).main(args=list(argv), prog_name="leadtime", standalone_mode=False)
    except LeadtimeError as error:
        return _say(str(error), error.slug, error.exit_code)
    except ClickException as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return say_stopped(STOPPED_EXIT)
    except BrokenPipeError:
        return 0
    except Exception as error:
        if os.environ.get("LEADTIME_DEBUG") == "1":
            raise
        what = f"{type(error).__name__}: {error}"
        return _say(f"a defect in leadtime: {what}; please report it, with LEADTIME_DEBUG=1 set", "defect", DEFECT_EXIT)
    if code == STOPPED_EXIT:  # typer turns Ctrl-C into this code and says nothing
        return say_stopped(STOPPED_EXIT)
    return code if isinstance(code, int) else 0


def _usage(error: ClickException) -> int:
    """A wrong option or argument: one line. No command at all: the help, which is what was asked for."""
    message = error.format_message().rstrip(".")
    if isinstance(error, NoArgsIsHelpError):
        typer.echo(message, err=True)
        return USAGE_EXIT
    for words, plain in _PLAIN:
        message = words.sub(plain, message)
    ctx = getattr(error, "ctx", None)
    command = "leadtime" if ctx is None else ctx.command_path
    return _say(f"{message}; see '{command} --help'", "usage", USAGE_EXIT)


def _say(message: str, slug: str, code: int) -> int:
    """One line, whatever the message holds: a path or a cell may carry line breaks."""
    print(f"leadtime: {' '.join(message.split())} [{slug}]", file=sys.stderr)  # noqa: T201 - this is the command line
    return code
