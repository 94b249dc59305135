"""The harness's calls against a small HTTP server that answers as an API server does."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from leadtime.testing.cluster.api import Api, ApiError, NotReached

PODS = "/api/v1/namespaces/ns/pods"


def pod(name: str, phase: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": {"phase": phase}}


def listed(*pods: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"metadata": {"resourceVersion": "7"}, "items": list(pods)}


def events(*told: tuple[str, dict[str, Any]]) -> tuple[int, Any]:
    return 200, "".join(json.dumps({"type": kind, "object": one}) + "\n" for kind, one in told)


class Server:
    """Gives its answers one after the other, the last one for ever; watches have their own."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.watches: list[tuple[int, Any]] = [events()]
        self.asked: list[tuple[str, str, str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                server.asked.append((self.command, self.path, body, self.headers["Authorization"]))
                some = server.watches if "watch=true" in self.path else server.answers
                status, said = some.pop(0) if len(some) > 1 else some[0]
                content = (said if isinstance(said, str) else json.dumps(said)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = do_DELETE = do  # noqa: N815 -- the base class looks for these names

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.http.shutdown()
    one.http.server_close()


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    one = Api(url=f"http://127.0.0.1:{server.http.server_address[1]}", token="t", trust=ssl.create_default_context())
    yield one
    one.close()


def running(pods: Any) -> bool:
    return [each["status"]["phase"] for each in pods] == ["Running"]


def test_what_holds_already_is_not_waited_for(server: Server, api: Api) -> None:
    server.answers = [listed(pod("a", "Running"))]
    assert api.until(PODS, running) == [pod("a", "Running")]
    assert server.asked == [("GET", PODS, "", "Bearer t")]


def test_events_change_what_was_listed_until_it_holds(server: Server, api: Api) -> None:
    bookmark = ("BOOKMARK", {"metadata": {"resourceVersion": "8"}})
    told = [
        ("ADDED", pod("b", "Pending")),
        bookmark,
        ("MODIFIED", pod("a", "Running")),
        ("DELETED", pod("b", "Pending")),
    ]
    server.answers, server.watches = [listed(pod("a", "Pending"))], [events(*told)]
    assert api.until(PODS, running) == [pod("a", "Running")]
    assert "resourceVersion=7" in server.asked[1][1]


def test_an_expired_watch_is_listed_again(server: Server, api: Api) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    server.answers, server.watches = [listed(), listed(pod("a", "Running"))], [(410, gone)]
    assert api.until(PODS, running) == [pod("a", "Running")]


def test_an_error_that_waiting_does_not_mend_is_raised_at_once(server: Server, api: Api) -> None:
    server.answers = [(403, {"kind": "Status", "reason": "Forbidden", "message": "no"})]
    with pytest.raises(ApiError, match="403 Forbidden: no") as refused:
        api.until(PODS, running)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_what_does_not_come_about_is_told_with_what_was_seen(server: Server, api: Api) -> None:
    server.answers = [listed(pod("a", "Pending"))]
    with pytest.raises(NotReached, match=r"not as wanted within 0\.2 s; last seen: .*Pending"):
        api.until(PODS, running, within_s=0.2)


def test_one_object_is_watched_by_its_name(server: Server, api: Api) -> None:
    server.answers = [listed(pod("a", "Running"))]
    assert api.until_object(f"{PODS}/a", lambda one: one["status"]["phase"] == "Running")["metadata"]["name"] == "a"
    assert server.asked[0][1] == f"{PODS}?fieldSelector=metadata.name%3Da"


def test_the_path_of_an_object_comes_from_discovery(server: Server, api: Api) -> None:
    resources = [
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
    ]
    server.answers = [(200, {"resources": resources}), (200, {"stored": True})]
    one = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "ns"}}
    assert api.apply(one, manager="leadtime", force=True) == {"stored": True}
    assert [call[:2] for call in server.asked] == [
        ("GET", "/apis/apps/v1"),
        ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/m?fieldManager=leadtime&force=true"),
    ]
    assert json.loads(server.asked[1][2]) == one
    api.create(one)
    assert server.asked[2][:2] == ("POST", "/apis/apps/v1/namespaces/ns/deployments")


def test_deleting_what_is_not_there_is_no_mistake(server: Server, api: Api) -> None:
    server.answers = [(404, {"reason": "NotFound", "message": "x"})]
    api.delete(f"{PODS}/a")
    server.answers = [(500, {"reason": "InternalError", "message": "x"})]
    with pytest.raises(ApiError):
        api.delete(f"{PODS}/a")
