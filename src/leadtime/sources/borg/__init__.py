"""Files of Borg-like traces in any dialect → canonical tables (domain/borg.py), with every rejected row counted."""
