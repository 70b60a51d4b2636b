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
from viewfold.web.desk import Desk
from viewfold.web.inputs import Check, checked
from viewfold.web.jobs import Job, error_facts, status_of

T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Response]]

MOST_BODY = 10 * 2**20  # bytes of a request that is no file: room for a list of a million ids
# The page itself, which holds no data: address, package, file, kind.
STATIC = {
    "": ("viewfold.web", "index.html", "text/html; charset=utf-8"),
    "page.js": ("viewfold.web", "static/page.js", "text/javascript; charset=utf-8"),
    "page.css": ("viewfold.web", "static/page.css", "text/css; charset=utf-8"),
    "ui.js": ("viewfold.web", "static/ui.js", "text/javascript; charset=utf-8"),
    "ui.css": ("viewfold.web", "static/ui.css", "text/css; charset=utf-8"),
}


class Json(Response):
    """Facts as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        return as_json(content).encode()


def app_of(desk: Desk) -> Starlette:
    """Return the application that answers for a desk."""
    api = _Api(desk)
    routes = [Route(f"/{name}", _static(*where), methods=["GET"]) for name, where in STATIC.items()]
    routes += [
        Route(f"/api/{path}", _answering(answer, desk.named), methods=[method])
        for method, path, answer in api.table()
    ]
    handlers = {Exception: _failed, HTTPException: _not_served}
    return Starlette(routes=routes, exception_handlers=handlers)


class _Api:
    """What is asked, by whom it is answered."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def table(self) -> list[tuple[str, str, Answer]]:
        """Return methods and addresses."""
        desk, entry = self.desk, {"entry": inputs.whole(0)}
        asks = {"id": inputs.text, "cluster": inputs.whole(0), "view": inputs.text}
        asks["top"] = inputs.whole(1, 1000)
        numbers = {"from": inputs.whole(2, 10_000), "to": inputs.whole(2, 10_000)}
        new = {"clusters": inputs.clusters, **entry}
        name = {"cluster": inputs.whole(0), "name": inputs.any_text, **entry}
        return [
            ("GET", "status", self._get(lambda said: desk.status(said.get("entry")), entry)),
            ("GET", "summary", self._get(lambda said: desk.page().summary)),
            ("GET", "columns/{name}", self.column),
            ("GET", "changes", self._get(lambda s: desk.changes(s["entry"]), entry, "entry")),
            ("GET", "explain", self._get(desk.explain, asks)),
            ("GET", "export", self.export),
            ("PUT", "uploads", self.upload),
            ("DELETE", "uploads/{upload}", self.drop),
            ("POST", "inspect", self._job(desk.inspect, inputs.VIEW, "upload")),
            ("POST", "fold", self._job(desk.fold, inputs.FOLD, "upload")),
            ("POST", "recluster", self._job(desk.recluster, new, "clusters")),
            ("POST", "suggest", self._job(desk.suggest, numbers)),
            ("GET", "job", self.job),
            ("DELETE", "job", self.stop),
            ("POST", "rename", self._post(desk.rename, name, "cluster", "name")),
            ("GET", "undo", self._get(lambda said: desk.undoable())),
            ("POST", "undo", self._post(desk.undo, entry, "entry")),
            ("POST", "forget", self._post(desk.forget, {"ids": inputs.ids}, "ids")),
        ]

    # -- kinds of requests

    def _get(self, ask: Callable[[dict[str, Any]], Any], known: Any = None, *needed: str) -> Answer:
        async def answer(request: Request) -> Response:
            said = checked(dict(request.query_params), known or {}, needed)
            return Json(await self._call(ask, said))

        return answer

    def _post(
        self, do: Callable[[dict[str, Any]], Any], known: dict[str, Check], *needed: str
    ) -> Answer:
        async def answer(request: Request) -> Response:
            return Json(await self._call(do, checked(await _body(request), known, needed)))

        return answer

    def _job(
        self, begin: Callable[[dict[str, Any]], Job], known: dict[str, Check], *needed: str
    ) -> Answer:
        async def answer(request: Request) -> Response:
            job = await self._call(begin, checked(await _body(request), known, needed))
            return Json(job.facts(), status_code=202)

        return answer

    async def _call(self, ask: Callable[..., T], *args: Any) -> T:
        """Call something that may take a while, with the engine and words of the command line."""
        return await run_in_threadpool(self.desk.worker.context.copy().run, ask, *args)

    # -- those with a shape of their own

    async def column(self, request: Request) -> Response:
        """Return a column as bytes."""
        said = checked(dict(request.query_params), {"entry": inputs.whole(0)})
        name = request.path_params["name"]
        data, kind = await self._call(self.desk.column, name, said.get("entry"))
        text = kind == "text"
        return Response(
            data, media_type="text/plain; charset=utf-8" if text else "application/octet-stream"
        )

    async def export(self, request: Request) -> Response:
        """Return the clusters as a file."""
        endings = tuple(one.removeprefix(".") for one in TABLES)
        known: dict[str, Check] = {"format": inputs.one_of(*endings)}
        ending = checked(dict(request.query_params), known).get("format", "csv")
        path: Path = await self._call(self.desk.export, f".{ending}")
        gone = BackgroundTask(partial(path.unlink, missing_ok=True))
        return FileResponse(
            path,
            filename=f"{Path(self.desk.state).stem}-clusters.{ending}",
            media_type="application/octet-stream",
            background=gone,
        )

    async def upload(self, request: Request) -> Response:
        """Take a file, as the body of the request."""
        said = checked(dict(request.query_params), {"name": inputs.text}, ("name",))
        uploads = self.desk.uploads
        uploads.check(request.headers.get("content-length"))
        found = await uploads.receive(said["name"], request.stream())
        facts = {"upload": found.key, "file": found.name, "bytes": found.size}
        return Json(facts, status_code=201)

    async def drop(self, request: Request) -> Response:
        """Remove a file that is not wanted any more."""
        return Json({"removed": self.desk.uploads.drop(request.path_params["upload"])})

    async def job(self, request: Request) -> Response:
        """Tell how far the work is, or what came of it."""
        job = self.desk.worker.latest
        if job is None:
            raise FileNotFoundError("Nothing was asked for yet.")
        return Json(job.facts())

    async def stop(self, request: Request) -> Response:
        """End the work at its next sign of life."""
        job = self.desk.worker.latest
        if job is None:
            raise FileNotFoundError("Nothing was asked for yet.")
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


def _static(package: str, name: str, kind: str) -> Answer:
    async def answer(request: Request) -> Response:
        with suppress(FileNotFoundError):
            return Response(resources.files(package).joinpath(name).read_bytes(), media_type=kind)
        raise HTTPException(404)

    return answer
