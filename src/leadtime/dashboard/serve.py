"""An application → a server on 127.0.0.1, for the person at this machine and nobody else."""

import errno
import socket
import sys
import webbrowser

import uvicorn
from fastapi import FastAPI

from leadtime.domain.errors import WrongUse

HOST = "127.0.0.1"
LET_GO_S = 2  # open event streams are cut after this, so that Ctrl-C ends at once


def serve(app: FastAPI, port: int, open_browser: bool = False) -> None:  # noqa: FBT001, FBT002 - the agreed signature
    """Serve ``app`` until Ctrl-C; prints the address. Port 0 takes a free one. Raises WrongUse for a taken port."""
    listener = listen(port)
    url = f"http://{HOST}:{listener.getsockname()[1]}/"
    sys.stdout.write(f"leadtime: the page is at {url} (Ctrl-C ends)\n")
    sys.stdout.flush()
    if open_browser:
        webbrowser.open(url)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=LET_GO_S)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    finally:
        listener.close()


def listen(port: int) -> socket.socket:
    """A socket bound to ``port`` on 127.0.0.1. Raises WrongUse when it is taken, forbidden or no port."""
    doing = f"serving the page on {HOST}:{port}"
    if not 0 <= port <= 65_535:
        raise WrongUse(
            "page-bad-port", doing, f"{port} is no port", "choose one from 1024 to 65535, or 0 for a free one"
        )
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        wrong = "the port is taken" if taken else f"the port cannot be used ({error.strerror})"
        raise WrongUse(
            "page-port-busy", doing, wrong, "end the other program, or choose --port 0 for a free one"
        ) from error
    return listener
