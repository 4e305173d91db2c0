"""A client of `/mcp` (streamable HTTP), as simple as a host can be. It counts what a model would write and read."""

import http.client
import itertools
import json
import time
import urllib.parse

from client import DEADLINE, MOST_OF_LIST, Refused, tokens

VERSION = "2026-07-28"


class Tools:
    """The tools of a service, for a token. `result` is what a model gets: texts and images, no more."""

    def __init__(self, base_url, token, version=VERSION):
        self.host, self.token, self.version = urllib.parse.urlsplit(base_url).netloc, token, version
        self.ids, self.calls, self.written, self.read = itertools.count(1), 0, 0, 0
        # Tokens of the list of tools, which hosts show a model once.
        self.listed = 0
        self.transcript = []
        # Is called before each call of a tool, with its name: what happens meanwhile.
        self.meanwhile = None
        # The tool whose next answer is lost.
        self.lost = None

    def send(self, method, params):
        """Sends a request on a connection of its own: nothing is kept on the other side."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.version,
        }
        if self.version >= "2026-07-28":
            headers["Mcp-Method"] = method
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
            meta = {
                "protocolVersion": self.version,
                "clientInfo": {"name": "scripted-agent", "version": "1"},
                "clientCapabilities": {},
            }
            params = params | {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}}
        body = json.dumps({"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params})
        connection = http.client.HTTPConnection(self.host, timeout=DEADLINE)
        connection.request("POST", "/mcp", body, headers)
        return connection

    def request(self, method, params):
        """The result of a request."""
        connection = self.send(method, params)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = {"error": {"message": text}}
        if "result" not in answer:
            raise Refused(method, response.status, answer)
        return answer["result"]

    def cut(self, tool, arguments):
        """Sends a call and loses its answer: the connection ends while the service is at work."""
        connection = self.send("tools/call", {"name": tool, "arguments": arguments})
        time.sleep(0.2)
        connection.close()

    def list(self):
        result = self.request("tools/list", {})
        self.listed = tokens(json.dumps(result["tools"], separators=(",", ":"), ensure_ascii=False), MOST_OF_LIST)
        return result["tools"]

    def call(self, tool, /, **arguments):
        """Calls a tool. Returns whether it failed, its text as JSON where it is that, and its images."""
        self.calls += 1
        if self.meanwhile:
            self.meanwhile(tool)
        if tool == self.lost:
            self.lost = None
            self.cut(tool, arguments)
            return True, "The connection was lost before the answer came.", []
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        text = "".join(part["text"] for part in result["content"] if part["type"] == "text")
        self.written += tokens(f"{tool} {json.dumps(arguments, separators=(',', ':'))}")
        self.read += tokens(text)
        failed = result.get("isError", False)
        self.transcript.append((tool, arguments, failed, text))
        try:
            told = json.loads(text)
        except ValueError:
            told = text
        return failed, told, [part for part in result["content"] if part["type"] == "image"]

    def ok(self, tool, /, **arguments):
        """The text of a call that must not fail."""
        failed, told, _ = self.call(tool, **arguments)
        assert not failed, f"{tool} {arguments}: {told}"
        return told

    def fails(self, tool, /, **arguments):
        """What a call says that must fail."""
        failed, told, _ = self.call(tool, **arguments)
        assert failed, f"{tool} {arguments}: {told}"
        return told
