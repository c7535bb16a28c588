"""Stand-ins for the services of model providers: they answer by a script on loopback and record every request."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from loopback import Server

FEW_TOKENS = 1000


@dataclass
class Call:
    """A call of a tool that the model asks for."""

    tool: str
    arguments: dict | str


@dataclass
class Step:
    """One answer of the model: a text, calls, and the reported number of tokens of the request."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    tokens: int = FEW_TOKENS


@dataclass
class Request:
    """A request that arrived: its address, its body, and its purpose."""

    path: str
    body: dict
    kind: str

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


TURN, SUMMARY, ASIDE, OTHER = "turn", "summary", "aside", "other"


class StandIn:
    """A server that answers a client's turns with the steps of a script, one per request.

    Requests for a summary of the conversation are answered with `summary`, other requests beside turns, as
    for a title, with `aside`. A subclass knows one provider's protocol.
    """

    summary = "The person wants calc.py fixed. calc.py was edited."
    aside = "A title"

    def __init__(self):
        self.requests: list[Request] = []
        self.steps: list[Step | Callable[[Request], Step]] = []
        self.steps_of_sub_agent: list[Step] = []
        self._lock = threading.Lock()
        self.server = Server(Handler, self)

    def play(self, *steps: Step | Callable[[Request], Step]):
        """Adds steps to the script. A step that depends on the request before it is a function."""
        with self._lock:
            self.steps.extend(steps)

    def of_kind(self, kind: str) -> list[Request]:
        with self._lock:
            return [request for request in self.requests if request.kind == kind]

    @property
    def turns(self) -> list[Request]:
        return self.of_kind(TURN)

    def respond(self, path: str, body: dict) -> tuple[str, bytes]:
        """The content type and the body of the answer to a request."""
        kind = self.kind(path, body)
        request = Request(path, body, kind)
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            if kind == TURN:
                steps = self.steps_of_sub_agent if self.is_of_sub_agent(body) else self.steps
                step = steps.pop(0) if steps else Step("Nothing is left to do.")
            else:
                step = Step(self.summary if kind == SUMMARY else self.aside)
        step = step(request) if callable(step) else step
        return self.answer(kind, path, body, step, number)

    def kind(self, path: str, body: dict) -> str:
        """The purpose of a request: a turn, a summary, an aside or something else."""
        raise NotImplementedError

    def is_of_sub_agent(self, body: dict) -> bool:
        """Whether a request comes from a sub-agent, whose steps may come at any time between the agent's."""
        return False

    def answer(self, kind: str, path: str, body: dict, step: Step, number: int) -> tuple[str, bytes]:
        """The step in the protocol of the provider, as the answer to the request with this number."""
        raise NotImplementedError


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send("application/json", b"")

    def do_GET(self):
        self.send("application/json", b'{"object":"list","data":[],"models":[]}')

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = {
                "unreadable": self.headers.get("content-encoding") or raw[:200].decode("utf-8", "replace")
            }
        self.send(*self.server.owner.respond(self.path, body))

    def send(self, content_type: str, body: bytes):
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def plain(value) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def stream(events: list[tuple[str | None, dict | str]]) -> tuple[str, bytes]:
    """Server-sent events, each with its name if it has one."""
    lines = []
    for name, data in events:
        if name:
            lines.append(f"event: {name}\n")
        lines.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "text/event-stream", "".join(lines).encode()
