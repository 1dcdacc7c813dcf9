"""The server of `vsr explore`: one page, and what it asks, on the loopback address only.

It writes no file and runs nothing but the specification. A page of another site cannot use it: the host that a request
names must be this server's, and what changes something is JSON, which a browser sends to no other site unasked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from viewproof.refinement.explorer.save import FORMS, save
from viewproof.refinement.explorer.searching import Search
from viewproof.refinement.explorer.subject import Goal, Subject, specification, stand
from viewproof.refinement.reports.behaviour.page import LOADER, page_files
from viewproof.spec.lang import SpecError

LOOPBACK = "127.0.0.1"
BODY_MAX = 1 << 20
"""Bytes of a request's body."""
_PACKAGE = "viewproof.refinement.explorer.page"
_JSON = "application/json"


class BadRequestError(Exception):
    """A request that is none of the page's."""


class Server(ThreadingHTTPServer):
    """Listens from its making on; `address` is where the page is. Port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, subject: Subject, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.subject = subject
        self.search = Search(subject)

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
        server.search.stop()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        asked: dict[str, Callable[[], Any]] = {
            "/": lambda: _page(self.server.subject),
            "/api/begin": lambda: _begin(self.server.subject),
            "/api/search": self.server.search.standing,
        }
        self._answer(asked)

    def do_POST(self) -> None:
        subject, search = self.server.subject, self.server.search
        asked: dict[str, Callable[[], Any]] = {
            "/api/stand": lambda: stand(subject, *_behaviour(self._body())),
            "/api/save": lambda: _saved(subject, self._body()),
            "/api/search": lambda: _begun(search, self._body()),
            "/api/stop": search.stop,
        }
        self._answer(asked)

    def _answer(self, asked: Mapping[str, Callable[[], Any]]) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self._send({"error": "this server answers its own page only"}, HTTPStatus.FORBIDDEN)
        elif (answer := asked.get(self.path.partition("?")[0])) is None:
            self._send({"error": f"there is no {self.path}"}, HTTPStatus.NOT_FOUND)
        else:
            try:
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
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(_PACKAGE, "."), LOADER]), autoescape=True, undefined=StrictUndefined
    )
    style, script = page_files()
    return environment.get_template("explore.html.j2").render(
        subject=subject, style=style + _own("explore.css"), script=script, own_script=_own("explore.js")
    )


def _own(name: str) -> Markup:
    return Markup(files(_PACKAGE).joinpath(name).read_text(encoding="utf-8"))
