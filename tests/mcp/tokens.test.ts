/** What a model reads before its work, as it is served: the list of tools, the digest and the skills, in tokens of o200k_base. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";

import { encode } from "gpt-tokenizer/encoding/o200k_base";

import { BASE_URL, TOKEN } from "../browser/service.ts";
import { STATELESS } from "./hosts.ts";

const LIST_MAX = 6000;
const DIGEST_PART_MAX = 6000;
const SKILL_MAX = 600;
const SKILLS = join(import.meta.dirname, "../../shared/skills");

/** A request for the list. Clients of the protocol leave out members that they do not know, so it is sent without one. */
const META = { protocolVersion: STATELESS, clientInfo: { name: "canvas-mcp-tests", version: "1" }, clientCapabilities: {} };
const REQUEST = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/list",
  params: { _meta: Object.fromEntries(Object.entries(META).map(([name, value]) => [`io.modelcontextprotocol/${name}`, value])) },
});

async function listOfService(): Promise<string> {
  const headers = {
    Authorization: `Bearer ${TOKEN}`,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": STATELESS,
    "Mcp-Method": "tools/list",
  };
  return (await fetch(`${BASE_URL}/mcp`, { method: "POST", headers, body: REQUEST })).text();
}

async function listOfCommand(): Promise<string> {
  const command = spawn(env["CANVAS_BIN"] ?? "canvas", ["mcp", "--root", tmpdir()], {
    env: { CANVAS_BASE_URL: BASE_URL, CANVAS_TOKEN: TOKEN },
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    command.stdin.write(`${REQUEST}\n`);
    for await (const line of createInterface(command.stdout)) return line;
    return "";
  } finally {
    command.kill();
  }
}

async function served(path: string): Promise<string> {
  const answer = await fetch(`${BASE_URL}${path}`);
  assert.equal(answer.status, 200, path);
  return answer.text();
}

function fits(text: string, most: number): void {
  const tokens = encode(text).length;
  assert(tokens > 0 && tokens <= most, `${tokens} tokens, more than ${most}`);
}

describe("tokens", () => {
  for (const [where, list] of [["/mcp", listOfService], ["canvas mcp", listOfCommand]] as const) {
    test(`the list of tools of ${where}`, async () => {
      const { result } = JSON.parse(await list()) as { result: { tools: object[] } };
      fits(JSON.stringify(result.tools), LIST_MAX);
    });
  }

  test("each skill", async () => {
    for (const name of await readdir(SKILLS)) fits(await served(`/skills/${name}/SKILL.md`), SKILL_MAX);
  });

  for (const query of ["", "?part=rest"]) {
    test(`the digest${query}`, async () => fits(await served(`/api/canvas-agent/v1/digest.md${query}`), DIGEST_PART_MAX));
  }
});
