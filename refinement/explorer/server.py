"""The server of `vsr explore`: one page, and what it asks, on the loopback address only.

It writes no file and runs nothing but the specification. A page of another site cannot use it: the host that a request
names must be this server's, and what changes something is JSON, which a browser sends to no other site unasked.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from viewproof.refinement.explorer.save import FORMS, save
from viewproof.refinement.explorer.searching import Search
from viewproof.refinement.explorer.subject import Goal, Subject, specification, stand
from viewproof.refinement.explorer.trace import Trace
from viewproof.refinement.explorer.trace_page import BadRequestError, own, page, trace_asked
from viewproof.spec.lang import SpecError

LOOPBACK = "127.0.0.1"
BODY_MAX = 1 << 20
"""Bytes of a request's body."""
_JSON = "application/json"
_FORK = re.compile("/from-([0-9]{1,9})/")


class Model:
    """A model that is explored, and its search."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.search = Search(subject)

    def asked(self, body: Callable[[], Mapping[str, Any]]) -> dict[tuple[str, str], Callable[[], Any]]:
        """What the page asks, by method and path below its own."""
        subject, search = self.subject, self.search
        return {
            ("GET", ""): lambda: _page(subject),
            ("GET", "api/begin"): lambda: _begin(subject),
            ("GET", "api/search"): search.standing,
            ("POST", "api/stand"): lambda: stand(subject, *_behaviour(body())),
            ("POST", "api/save"): lambda: _saved(subject, body()),
            ("POST", "api/search"): lambda: _begun(search, body()),
            ("POST", "api/stop"): search.stop,
        }


class Server(ThreadingHTTPServer):
    """Listens from its making on; `address` is where the page is. Port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, subject: Subject | Trace, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.trace = subject if isinstance(subject, Trace) else None
        self.models: dict[str, Model] = {}
        self._making = threading.Lock()
        if isinstance(subject, Subject):
            self.models["/"] = Model(subject)

    @property
    def search(self) -> Search:
        """The search in the model that is explored."""
        return self.models["/"].search

    def fork(self, number: int) -> str:
        """The path of a model that goes on from the trace's state after an event. Raises `SpecError`."""
        path = f"/from-{number}/"
        self.model_at(path)
        return path

    def model_at(self, path: str) -> Model | None:
        """The model at that path; one that goes on from an event of the trace is made when it is first asked for."""
        forked = _FORK.fullmatch(path)
        with self._making:
            if self.trace is not None and forked and path not in self.models:
                self.models[path] = Model(self.trace.fork(int(forked[1])))
            return self.models.get(path)

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as the host."""
        return frozenset({f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"})


def serve(server: Server) -> None:
    """Serve until interrupted."""
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        for model in server.models.values():
            model.search.stop()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _asked(self, method: str) -> Callable[[], Any] | None:
        """What answers this request."""
        path = self.path.partition("?")[0]
        server = self.server
        own = path[: path.find("/api/") + 1] if "/api/" in path else path
        for below in (own, "/"):
            if (model := server.model_at(below)) is not None:
                return model.asked(self._body).get((method, path.removeprefix(below)))
        if server.trace is None:
            return None
        return trace_asked(server.trace, self._body, server.fork).get((method, path.removeprefix("/")))

    def _answer(self, method: str) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self._send({"error": "this server answers its own page only"}, HTTPStatus.FORBIDDEN)
        else:
            try:
                answer = self._asked(method)
                if answer is None:
                    self._send({"error": f"there is no {self.path}"}, HTTPStatus.NOT_FOUND)
                else:
                    self._send(answer())
            except SpecError as problem:
                self._send({"error": problem.message}, HTTPStatus.CONFLICT)
            except BadRequestError as problem:
                self._send({"error": str(problem)}, HTTPStatus.BAD_REQUEST)

    def _send(self, answer: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        is_page = isinstance(answer, str)
        data = (answer if is_page else json.dumps(answer, ensure_ascii=False)).encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{'text/html' if is_page else _JSON}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'self' 'unsafe-inline' data: blob:")
        if status != HTTPStatus.OK:
            self.close_connection = True
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != _JSON:
            raise BadRequestError(f"the body must be {_JSON}")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_MAX:
            raise BadRequestError(f"a body has at most {BODY_MAX} bytes, and says how many")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise BadRequestError("the body is no JSON") from None
        if not isinstance(body, dict):
            raise BadRequestError("the body is no JSON object")
        return body

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def _behaviour(body: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, dict[str, int]]]]:
    """`faults` (ids) and `walk` (pairs of an action's name and its arguments) of a request."""
    faults, walk = body.get("faults"), body.get("walk")
    if not isinstance(faults, list) or not all(isinstance(id, str) for id in faults):
        raise BadRequestError("faults is a list of names")
    if not isinstance(walk, list) or not all(
        isinstance(step, list) and len(step) == 2 and isinstance(step[0], str) and isinstance(step[1], dict)
        for step in walk
    ):
        raise BadRequestError("walk is a list of steps, each [ACTION, {NAME: VALUE}]")
    return tuple(dict.fromkeys(faults)), [(name, args) for name, args in walk]


def _begin(subject: Subject) -> dict[str, Any]:
    spec = specification(subject, ())
    return {
        "model": subject.name,
        "sizes": subject.sizes,
        "faults": [{"id": id, "doc": doc} for id, doc in subject.faults.items()],
        "switched": list(subject.switched),
        "walk": [list(step) for step in subject.begin],
        "witnesses": [{"id": w.id, "title": w.title, "doc": w.doc} for w in spec.witnesses],
        "searches": subject.searches,
        "forms": [form for form in FORMS if form != "python" or subject.python is not None],
    }


def _saved(subject: Subject, body: Mapping[str, Any]) -> dict[str, str]:
    name, text = save(subject, str(body.get("form")), *_behaviour(body))
    return {"name": name, "text": text}


def _begun(search: Search, body: Mapping[str, Any]) -> Mapping[str, Any]:
    faults, _ = _behaviour(body)
    id, breaks = body.get("id"), body.get("breaks")
    if not isinstance(id, str) or not isinstance(breaks, bool):
        raise BadRequestError("id is that of an invariant, breaks says whether its break or its witness is looked for")
    search.begin(faults, Goal(id, breaks))
    return search.standing()


def _page(subject: Subject) -> str:
    return page("explore.html.j2", subject=subject, own_script=own("ask.js", "explore.js"))
