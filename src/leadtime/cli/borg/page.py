"""``--html FILE`` → where a page goes, refused before any work where its folder is not there."""

from pathlib import Path

import typer


def parse_page(text: str) -> Path:
    """A file to be written into a folder that is there: none is made that nobody asked for. Raises BadParameter."""
    page = Path(text).expanduser()
    if page.is_dir():
        raise typer.BadParameter(f"{page} is a folder; name a file, such as {page / 'page.html'}")
    if not page.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {page.parent}; make it, or name another file")
    return page
