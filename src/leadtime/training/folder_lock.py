"""A folder that is written to → one run at a time: the second is refused with the folder, the first one and a cure.

The lock is the kernel's (``flock`` on a hidden file in the folder), so a run that was killed holds nothing. The file
is taken away at the end. Who only reads needs no lock: manifests come last and in one rename.
"""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leadtime.domain.errors import BadTrace
from leadtime.training.manifest import disk_errors

LOCK = ".leadtime-lock"
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})  # some network file systems


@contextmanager
def sole_writer(folder: Path, *, doing: str) -> Iterator[None]:
    """Make ``folder`` (it goes again if it stays empty) and hold it while the body runs.

    Where the file system knows no locks, nothing is held.

    Raises BadTrace (exit 2: nothing broke and nothing was written, the user chooses between waiting and another
    folder) while another run holds it; DependencyFailed where the folder cannot be written to.
    """
    path = folder / LOCK
    with disk_errors(doing, folder):
        was_there = folder.is_dir()
        folder.mkdir(parents=True, exist_ok=True)
        file = _held(path, doing)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held: whoever opened it meanwhile sees that it is gone
        os.close(file)
        if not was_there:
            with suppress(OSError):
                folder.rmdir()  # only where nothing came of the run


def _held(path: Path, doing: str) -> int:
    """The locked file's descriptor. A file that its holder took away between opening and locking is opened anew."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 200, 0).decode("utf-8", "replace").strip()
            os.close(file)
            raise _refused(path.parent, doing, holder) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(file)
                raise
            return file
        if _is_there(path, file):
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return file
        os.close(file)


def _is_there(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _refused(folder: Path, doing: str, holder: str) -> BadTrace:
    return BadTrace(
        "folder-in-use", doing, f"another run ({holder or 'not named'}) is writing into {folder}",
        "wait until it has ended and run this again (what it finished is kept), or name another folder",
    )  # fmt: skip
