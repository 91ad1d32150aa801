"""`git http-backend` behind a small CGI host on `http.server`: `python -m bench.cgi_git FOLDER`.

FOLDER contains bare repositories. The program prints its port and serves until it is killed, with a thread per
connection.
"""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Host(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._run(b"")

    def do_POST(self) -> None:
        self._run(self._body())

    def _run(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": sys.argv[1],
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        with subprocess.Popen(
            ["git", "http-backend"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as backend:
            assert backend.stdin is not None
            assert backend.stdout is not None
            backend.stdin.write(body)
            backend.stdin.close()
            status, headers = 200, []
            while line := backend.stdout.readline().strip():
                name, _, value = line.decode().partition(": ")
                if name == "Status":
                    status = int(value.split()[0])
                else:
                    headers.append((name, value))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while part := os.read(backend.stdout.fileno(), 64 * 1024):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_: object) -> None:
        """Log nothing, which favours this server."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Host)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
