"""The JSON interface of a page; docs/ui.md has the table of it, and a test compares the two."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from viewfold.app.output import TABLES, as_json
from viewfold.errors import InputError
from viewfold.web import inputs
from viewfold.web.inputs import Check, checked
from viewfold.web.jobs import Job, error_facts, status_of
from viewfold.web.session import Session

T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Response]]

MOST_BODY = 10 * 2**20  # bytes of a request that is no file: room for a list of a million ids
# The page itself, which holds no data: address, file, kind.
STATIC = {
    "": ("index.html", "html"),
    "page.js": ("static/page.js", "javascript"),
    "page.css": ("static/page.css", "css"),
    "ui.js": ("static/ui.js", "javascript"),
    "ui.css": ("static/ui.css", "css"),
}


class Json(Response):
    """Facts as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return as_json(content).encode()


def app_of(session: Session) -> Starlette:
    api = _Api(session)
    routes = [Route(f"/{name}", _static(*where), methods=["GET"]) for name, where in STATIC.items()]
    routes += [
        Route(f"/api/{path}", _answering(answer, session.named), methods=[method])
        for method, path, answer in api.table()
    ]
    handlers = {Exception: _failed, HTTPException: _not_served}
    return Starlette(routes=routes, exception_handlers=handlers)


class _Api:
    """What is asked, by whom it is answered."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def table(self) -> list[tuple[str, str, Answer]]:
        """Return methods and addresses."""
        session, entry = self.session, {"entry": inputs.whole(0)}
        asks = {"id": inputs.text, "cluster": inputs.whole(0), "view": inputs.text}
        asks["top"] = inputs.whole(1, 1000)
        numbers = {"from": inputs.whole(2, 10_000), "to": inputs.whole(2, 10_000)}
        new = {"clusters": inputs.clusters, **entry}
        name = {"cluster": inputs.whole(0), "name": inputs.any_text, **entry}
        return [
            ("GET", "status", self._ask(session.status, entry)),
            ("GET", "summary", self._ask(lambda said: session.page().summary)),
            ("GET", "columns/{name}", self.column),
            ("GET", "changes", self._ask(session.changes_since, entry, "entry")),
            ("GET", "explain", self._ask(session.explain, asks)),
            ("GET", "export", self.export),
            ("PUT", "uploads", self.upload),
            ("DELETE", "uploads/{upload}", self.drop),
            ("POST", "inspect", self._do("inspect", inputs.VIEW, "upload")),
            ("POST", "fold", self._do("fold", inputs.FOLD, "upload")),
            ("POST", "recluster", self._do("recluster", new, "clusters")),
            ("POST", "suggest", self._do("suggest", numbers)),
            ("GET", "job", self.job),
            ("DELETE", "job", self.job),
            ("POST", "rename", self._do("rename", name, "cluster", "name")),
            ("GET", "undo", self._ask(lambda said: session.undoable())),
            ("POST", "undo", self._do("undo", entry, "entry")),
            ("POST", "forget", self._do("forget", {"ids": inputs.ids}, "ids")),
        ]

    def _ask(self, ask: Callable[[dict[str, Any]], Any], known: Any = None, *needed: str) -> Answer:
        """Answer with facts; for a job, which takes a while, with how far it is."""

        async def answer(request: Request) -> Response:
            posted = request.method == "POST"
            given = await _body(request) if posted else dict(request.query_params)
            found = await self._call(ask, checked(given, known or {}, needed))
            if isinstance(found, Job):
                return Json(found.facts(), status_code=202)
            return Json(found)

        return answer

    def _do(self, what: str, known: Any, *needed: str) -> Answer:
        return self._ask(partial(self.session.do, what), known, *needed)

    async def _call(self, ask: Callable[..., T], *args: Any) -> T:
        """Call something that may take a while, with the engine of the command line."""
        return await run_in_threadpool(self.session.worker.context.copy().run, ask, *args)

    # -- those with a shape of their own

    async def column(self, request: Request) -> Response:
        said = checked(dict(request.query_params), {"entry": inputs.whole(0)})
        name = request.path_params["name"]
        data, kind = await self._call(self.session.column, name, said.get("entry"))
        text = kind == "text"
        return Response(
            data, media_type="text/plain; charset=utf-8" if text else "application/octet-stream"
        )

    async def export(self, request: Request) -> Response:
        """Return the clusters as a file."""
        endings = tuple(one.removeprefix(".") for one in TABLES)
        known: dict[str, Check] = {"format": inputs.one_of(*endings)}
        ending = checked(dict(request.query_params), known).get("format", "csv")
        path: Path = await self._call(self.session.export, f".{ending}")
        gone = BackgroundTask(partial(path.unlink, missing_ok=True))
        return FileResponse(
            path,
            filename=f"{Path(self.session.state).stem}-clusters.{ending}",
            media_type="application/octet-stream",
            background=gone,
        )

    async def upload(self, request: Request) -> Response:
        said = checked(dict(request.query_params), {"name": inputs.text}, ("name",))
        uploads = self.session.uploads
        uploads.check(request.headers.get("content-length"))
        found = await uploads.receive(said["name"], request.stream())
        facts = {"upload": found.key, "file": found.name, "bytes": found.size}
        return Json(facts, status_code=201)

    async def drop(self, request: Request) -> Response:
        return Json({"removed": self.session.uploads.drop(request.path_params["upload"])})

    async def job(self, request: Request) -> Response:
        job = self.session.worker.latest
        if job is None:
            raise FileNotFoundError("Nothing was asked for yet.")
        if request.method == "DELETE":  # it ends at its next sign of life
            job.stopping = True
        return Json(job.facts())


async def _body(request: Request) -> Any:
    """Return the JSON of a request; only what says that it is JSON is read."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InputError("The request should hold JSON, and say so: Content-Type.")
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > MOST_BODY:
            raise InputError(f"A request has at most {MOST_BODY:,} bytes.")
    try:
        said = json.loads(bytes(found) or b"{}")
        # Neither halves of characters nor numbers without end: nobody could be told of them.
        json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
        return said
    except (ValueError, RecursionError):
        raise InputError("The request holds no JSON that can be read.") from None


def _answering(answer: Answer, words: Callable[[str], str]) -> Answer:
    """Let errors be answers, also those that Starlette would take for defects."""

    async def run(request: Request) -> Response:
        try:
            return await answer(request)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody hears it
        except (Exception, KeyboardInterrupt) as error:
            return Json({"error": error_facts(error, words)}, status_code=status_of(error))

    return run


async def _failed(request: Request, error: BaseException) -> Response:
    return Json({"error": error_facts(error)}, status_code=status_of(error))


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    facts = {"code": "not-found", "message": f"There is no {request.method} {request.url.path}."}
    return Json({"error": facts}, status_code=error.status_code)


def _static(name: str, kind: str) -> Answer:
    async def answer(request: Request) -> Response:
        with suppress(FileNotFoundError):
            data = resources.files("viewfold.web").joinpath(name).read_bytes()
            return Response(data, media_type=f"text/{kind}; charset=utf-8")
        raise HTTPException(404)

    return answer
