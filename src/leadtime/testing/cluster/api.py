"""Plain calls to a Kubernetes API server, as far as a test harness needs them: JSON in, JSON out.

Objects are dicts as the API writes them. This is no client for the product: it has no cache and no retry but the one
stated at ``until``.
"""

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from leadtime.domain.errors import DependencyFailed

Object = dict[str, Any]
_RETRY_AFTER_S = 0.1


class ApiError(DependencyFailed):
    """The API server answered with an error. ``status``: HTTP status; ``reason``: the API's word, such as Conflict."""

    def __init__(self, doing: str, status: int, reason: str, message: str) -> None:
        super().__init__("control-plane-api", doing, f"{status} {reason}: {message}", "see the API server's words")
        self.status = status
        self.reason = reason


class NotReached(DependencyFailed):
    """What a test waits for did not come about in time. The message carries what was last seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a watch. ``type``: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR."""

    type: str
    object: Object


@dataclass(slots=True, kw_only=True)
class Api:
    """One user's way to the API server. ``url``: https://host:port, no slash at the end."""

    url: str
    token: str
    trust: ssl.SSLContext
    _client: httpx2.Client = field(init=False)
    _kinds: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        self._client = httpx2.Client(
            base_url=self.url, verify=self.trust, headers=headers, timeout=30.0, trust_env=False
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def request(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json", **query: str
    ) -> Object:
        """One call. ``query``: parameters of the URL as the API spells them. Raises ApiError on any status ≥ 400."""
        content = None if body is None else json.dumps(body).encode()
        done = self._client.request(method, path, content=content, params=query, headers={"Content-Type": content_type})
        if done.status_code >= 400:
            raise _error(f"{method} {path}", done.status_code, done.text)
        answer: Object = done.json() if done.content else {}
        return answer

    def get(self, path: str, **query: str) -> Object:
        """One object or list."""
        return self.request("GET", path, **query)

    def create(self, wanted: Object) -> Object:
        """Create an object where its kind and namespace say; the object as stored."""
        return self.request("POST", self.collection(wanted), wanted)

    def apply(self, wanted: Object, *, manager: str, force: bool = False) -> Object:
        """Server-side apply under the field manager ``manager``."""
        return self.request(
            "PATCH", self.path_of(wanted), wanted, content_type="application/apply-patch+yaml",
            fieldManager=manager, force="true" if force else "false",
        )  # fmt: skip

    def merge(self, path: str, change: Object, **query: str) -> Object:
        """JSON merge patch: what ``change`` names is set, null takes away."""
        return self.request("PATCH", path, change, content_type="application/merge-patch+json", **query)

    def delete(self, path: str, **query: str) -> None:
        """Delete an object; one that is not there is no error."""
        try:
            self.request("DELETE", path, **query)
        except ApiError as error:
            if error.status != 404:
                raise

    def items(self, path: str, **query: str) -> list[Object]:
        """The objects of a collection."""
        found: list[Object] = self.get(path, **query).get("items") or []
        return found

    def collection(self, one: Object) -> str:
        """Path of the collection ``one`` (its apiVersion, kind, namespace) belongs to."""
        version, kind = one["apiVersion"], one["kind"]
        plural, namespaced = self._resource(version, kind)
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        space = f"/namespaces/{one['metadata'].get('namespace', 'default')}" if namespaced else ""
        return f"{root}{space}/{plural}"

    def path_of(self, one: Object) -> str:
        """Path of the object itself."""
        return f"{self.collection(one)}/{one['metadata']['name']}"

    def watch(self, path: str, *, within_s: float, **query: str) -> Iterator[Event]:
        """Events of a collection as they come, for at most ``within_s``. Raises httpx2's errors when the server goes.

        ``query``: parameters of the URL, such as ``resourceVersion``.
        """
        more = {**query, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(max(1, int(within_s)))}
        timeout = httpx2.Timeout(30.0, read=within_s + 1.0)
        with self._client.stream("GET", path, params=more, timeout=timeout) as lines:
            if lines.status_code >= 400:
                raise _error(f"watch {path}", lines.status_code, lines.read().decode())
            for line in lines.iter_lines():
                told = json.loads(line)
                yield Event(type=told["type"], object=told["object"])

    def until(
        self, path: str, holds: Callable[[Sequence[Object]], bool], *, within_s: float = 30.0, **query: str
    ) -> list[Object]:
        """List and watch the collection until ``holds`` is true of its objects; the objects then.

        A server that goes away or an expired watch is listed again until the time is over. Raises NotReached then.
        """
        ends_s = time.monotonic() + within_s
        seen: dict[str, Object] = {}
        while (left_s := ends_s - time.monotonic()) > 0:
            try:
                listed = self.get(path, **query)
                seen = {each["metadata"]["uid"]: each for each in listed.get("items") or []}
                if holds(list(seen.values())):
                    return list(seen.values())
                version = listed["metadata"]["resourceVersion"]
                for event in self.watch(path, within_s=left_s, resourceVersion=version, **query):
                    if event.type in {"ERROR", "BOOKMARK"}:
                        continue
                    _keep(seen, event)
                    if holds(list(seen.values())):
                        return list(seen.values())
            except (httpx2.TransportError, ApiError) as gone:
                if isinstance(gone, ApiError) and gone.status not in {410, 429, 500, 503}:
                    raise
                time.sleep(_RETRY_AFTER_S)
        raise NotReached(
            "control-plane-wait",
            f"waiting for {path}",
            f"not as wanted within {within_s:g} s; last seen: {json.dumps(list(seen.values()))[:3000]}",
            "look at the logs of the parts",
        )

    def until_object(self, path: str, holds: Callable[[Object], bool], *, within_s: float = 30.0) -> Object:
        """The object at ``path`` as soon as it is there and ``holds`` is true of it. Raises NotReached."""
        collection, name = path.rsplit("/", 1)
        found = self.until(
            collection,
            lambda some: len(some) == 1 and holds(some[0]),
            within_s=within_s,
            fieldSelector=f"metadata.name={name}",
        )
        return found[0]

    def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._kinds:
            listed = self.get(f"/apis/{version}" if "/" in version else f"/api/{version}")
            for each in listed["resources"]:
                if "/" not in each["name"]:
                    self._kinds[version, each["kind"]] = (each["name"], each["namespaced"])
        return self._kinds[version, kind]


def _keep(seen: dict[str, Object], event: Event) -> None:
    uid = event.object["metadata"]["uid"]
    if event.type == "DELETED":
        seen.pop(uid, None)
    else:
        seen[uid] = event.object


def _error(doing: str, status: int, text: str) -> ApiError:
    try:
        said: Mapping[str, Any] = json.loads(text)
    except ValueError:
        said = {}
    return ApiError(doing, status, str(said.get("reason", "")), str(said.get("message", text[:500])))
