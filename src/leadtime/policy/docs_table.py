"""The schema and the rules → docs/policy.md, so that the page cannot be stale.

``python -m leadtime.policy.docs_table > docs/policy.md`` writes it; a test compares.
"""

from leadtime.policy.fields import all_fields, plain, sections
from leadtime.policy.rules import RULES

_HEAD = """\
# Policy: every threshold

<!-- written by: python -m leadtime.policy.docs_table > docs/policy.md -->

A policy file is YAML or JSON: a section, and under it the thresholds that differ from the default. What is not written
keeps its default; what is misspelt, out of bounds or at odds with a rule is an error, never ignored.

```yaml
version: 1
actuation:
  stage: hpa_floor
scaling:
  target_utilisation_ratio: 0.70
```

`leadtime policy check FILE` checks one, `leadtime policy show` prints what holds, `leadtime policy explain FIELD` tells
what a threshold does at the values that matter.
"""
_RULES_HEAD = """\
## Rules that span thresholds

Each is a CEL expression over the policy, here as `self`. A policy that breaks one is refused.

| rule | holds | why | cure |
|---|---|---|---|
"""


def page() -> str:
    """The whole page, Markdown, ending in one line break."""
    parts = [_HEAD]
    for section, of in sections().items():
        doc = " ".join((of.__doc__ or "").split())
        rows = [
            f"| `{field.path}` | {plain(field.default)} | {field.unit or '–'} | {field.bounds} | {field.why} |"
            for field in all_fields()
            if field.section == section
        ]
        header = "| threshold | default | unit | bounds | why this default |\n|---|---|---|---|---|"
        parts.append(f"## {section}\n\n{doc}\n\n{header}\n" + "\n".join(rows) + "\n")
    rules = [f"| `{rule.id}` | `{_cell(rule.holds)}` | {rule.sentence} | {rule.cure} |" for rule in RULES]
    parts.append(_RULES_HEAD + "\n".join(rules) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    """A bar would end the cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - it is this module's whole purpose when run
