"""A proxy between a client and the service, which breaks requests on demand and lists those that it saw.

    python3 proxy.py ADDRESS_OF_THE_SERVICE

Prints its own address, and ends with the process that started it. A POST to `/-/faults` replaces the list of faults and forgets the requests; a GET of `/-/requests` returns the
requests since then. A fault is used up by the next request whose method and path it names:

    {"match": "POST /canvases", "times": 1, …}    a regular expression that begins at the path below the API root
    "status": 503, "headers": {…}                  is answered in place of the service
    "drop": "before"                               the connection is closed before the service sees the request
    "drop": "after"                                the service answers, and the connection is closed before the client gets any of it
    "cut": 2                                       an event stream breaks off after two events
    "strip": "prefer"                              the header does not reach the service
"""

import http.client
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

API_ROOT = "/api/canvas-agent/v1"
service = urllib.parse.urlsplit(sys.argv[1])
lock = threading.Lock()
faults: list[dict] = []
requests: list[dict] = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/-/faults":
            with lock:
                faults[:], requests[:] = json.loads(body), []
            return self.answer(204, {}, b"")
        if self.path == "/-/requests":
            with lock:
                return self.answer(200, {"Content-Type": "application/json"}, json.dumps(requests).encode())
        path = self.path.removeprefix(API_ROOT)
        fault = {}
        with lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            requests.append({"method": self.command, "path": path, "headers": headers, "body": body.decode("latin-1")})
            for each in faults:
                if each.get("times", 1) > 0 and re.match(each["match"], f"{self.command} {path}"):
                    each["times"] = each.get("times", 1) - 1
                    fault = each
                    break
        if "status" in fault:
            envelope = json.dumps({"error": {"code": fault.get("code", "service_unavailable"), "message": "a fault"}}).encode()
            return self.answer(fault["status"], {"Content-Type": "application/json", **fault.get("headers", {})}, envelope)
        if fault.get("drop") == "before":
            self.close_connection = True
            return None
        for name in (fault.get("strip"), "host", "connection"):
            headers.pop(name, None)
        connection = http.client.HTTPConnection(service.hostname, service.port)
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        is_stream = (answer.getheader("content-type") or "").startswith("text/event-stream")
        if not is_stream:
            content = answer.read()
        if fault.get("drop") == "after":
            self.close_connection = True
            return None
        kept = {name: value for name, value in answer.getheaders()
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date")}
        if not is_stream:
            return self.answer(answer.status, kept, b"" if answer.status == 304 else content)
        # In chunks without an end: a stream that breaks off is no complete answer.
        self.send_response(answer.status)
        for name, value in {**kept, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        events = 0
        while events < fault.get("cut", 1 << 30):
            line = answer.readline()
            if not line:
                return self.wfile.write(b"0\r\n\r\n")
            events += line == b"\n"
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            except OSError:
                # The client has left.
                return None

    do_GET = do_POST = do_PATCH = do_DELETE = handle_request


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
parent = os.getppid()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
while os.getppid() == parent:
    time.sleep(0.2)
