"""What a user can do wrong, and what a dependency can do to us. One tree, drawn here.

LeadtimeError                      every deliberate error; its slug has an entry in docs/errors.md
├── WrongUse                       exit 2: the user can mend it (bad file, bad policy, bad option)
│   ├── BadCalendar                a calendar of events and days off cannot be used
│   ├── BadDemandFile              a demand file cannot be read as a series
│   ├── BadPolicy                  a policy file breaks the schema or a cross-field rule
│   ├── BadScenario                a scenario file breaks its schema
│   ├── BadLedger                  a ledger is absent, of another format, or not a ledger
│   └── BadTrace                   a trace, a data set made from one, or a failure model cannot be used
└── DependencyFailed               exit 3: something leadtime needs did not answer

A message says what was being done, what is wrong (value and unit), and what to do.
"""


class LeadtimeError(Exception):
    """Base of all deliberate errors. ``slug`` names the page in docs/errors.md; ``exit_code`` is the process's."""

    exit_code = 2

    def __init__(self, slug: str, doing: str, wrong: str, cure: str) -> None:
        super().__init__(f"{doing}: {wrong}; {cure}")
        self.slug = slug
        self.doing = doing
        self.wrong = wrong
        self.cure = cure


class WrongUse(LeadtimeError):
    """The user's input cannot be used; nothing was written."""


class BadCalendar(WrongUse):
    """A calendar file cannot be used; the message names the entry."""


class BadDemandFile(WrongUse):
    """A demand file cannot be read as a series; names file, row and cure."""


class BadPolicy(WrongUse):
    """A policy file breaks the schema or a cross-field rule."""


class BadScenario(WrongUse):
    """A scenario file or name cannot be used."""


class BadLedger(WrongUse):
    """A ledger file is absent, of another format version, or no ledger at all."""


class BadTrace(WrongUse):
    """A trace file, a data set made from it, or a model folder cannot be used; finished partitions are kept."""


class DependencyFailed(LeadtimeError):
    """Something leadtime needs did not answer."""

    exit_code = 3
