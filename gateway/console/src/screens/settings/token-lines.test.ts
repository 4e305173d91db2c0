import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { commandLines, requestLines, toolLines } from "./token-lines.ts";

const SECRET = "cba_0198c5a0-0000-7000-8000-000000000001.Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmF-_Q";

test("the lines for a shell set what the command line reads", () => {
  const [environment] = commandLines("https://canvas.example.com", SECRET);
  const printed = execFileSync("sh", ["-c", `${environment?.text}\nprintf '%s %s' "$CANVAS_BASE_URL" "$CANVAS_TOKEN"`], { encoding: "utf8" });
  assert.equal(printed, `https://canvas.example.com ${SECRET}`);
});

test("the lines for tool hosts are JSON with the address and the token", () => {
  const [http, stdio] = toolLines("https://canvas.example.com", SECRET).map(({ text }) => JSON.parse(text) as { mcpServers: { canvas: object } });
  assert.deepEqual(http?.mcpServers.canvas, { type: "http", url: "https://canvas.example.com/mcp", headers: { Authorization: `Bearer ${SECRET}` } });
  assert.deepEqual(stdio?.mcpServers.canvas, { command: "canvas", args: ["mcp"], env: { CANVAS_BASE_URL: "https://canvas.example.com", CANVAS_TOKEN: SECRET } });
});

test("the request is one command of a shell", () => {
  const [request] = requestLines("http://[::1]:8080", SECRET);
  const words = execFileSync("sh", ["-c", `curl() { printf '%s\\n' "$@"; }\n${request?.text}`], { encoding: "utf8" }).trim().split("\n");
  assert.deepEqual(words.slice(-3), ["http://[::1]:8080/api/canvas-agent/v1/canvases", "-H", `Authorization: Bearer ${SECRET}`]);
});
