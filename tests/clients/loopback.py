"""Servers on loopback, and a proxy that refuses all other addresses."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """A running server on a free port, whose handlers find their `owner` in it."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler], owner):
        super().__init__(("127.0.0.1", 0), handler)
        self.owner = owner
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self):
        self.shutdown()
        self.server_close()

    def server_bind(self):
        # Without the look-up of the host's name that HTTPServer does.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address

    def handle_error(self, request, client_address):
        pass  # A client that ends breaks its connections.


class Outside:
    """A proxy that refuses every request and records the requested addresses."""

    def __init__(self):
        self.asked: list[str] = []
        self.server = Server(Refusal, self)


class Refusal(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def refuse(self):
        self.server.owner.asked.append(f"{self.command} {self.path}")
        self.send_error(403, "this test reaches nothing outside")

    do_CONNECT = do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = refuse
