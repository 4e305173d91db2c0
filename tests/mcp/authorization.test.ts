/**
 * The protocol's own clients connect from the address alone: they find the authorization server, register, and get and refresh their tokens.
 * The conformance suite tests that server.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { env, execPath } from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { Client as Client2, StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { freePort } from "../browser/processes.ts";
import { admin, BASE_URL, send, signInLink, stranger } from "../browser/service.ts";

const REDIRECT = "http://127.0.0.1:33418/callback";

interface Kept {
  access_token: string;
  token_type: string;
  refresh_token?: string | undefined;
  scope?: string | undefined;
}

/** What a host keeps, and the address to which it sent the person. */
class Provider {
  redirectUrl = REDIRECT;
  clientMetadata = { client_name: "MCP test host", redirect_uris: [REDIRECT], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] };
  asked: URL | undefined;
  registered: { client_id: string } | undefined;
  kept: Kept | undefined;
  verifier = "";

  state = () => "a-state";
  clientInformation = () => this.registered;
  saveClientInformation = (client: { client_id: string }) => void (this.registered = client);
  tokens = () => this.kept;
  saveTokens = (tokens: Kept) => void (this.kept = tokens);
  redirectToAuthorization = (url: URL) => void (this.asked = url);
  saveCodeVerifier = (verifier: string) => void (this.verifier = verifier);
  codeVerifier = () => this.verifier;
}

/** A person's session: the request of a page below `/console`. */
async function signedIn(account: string) {
  const headers = { Origin: BASE_URL, "X-Canvas-Console": "1", "Content-Type": "application/json" };
  const link = new URL(await signInLink(account)).hash.slice(1);
  const answer = await fetch(`${BASE_URL}/console/session`, { method: "POST", headers, body: JSON.stringify({ link }) });
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
  return async (path: string, body: object) => {
    const response = await fetch(`${BASE_URL}/console${path}`, { method: "POST", headers: { ...headers, Cookie: cookie }, body: JSON.stringify(body) });
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()) as { redirectTo: string };
  };
}

/** The person allows what a host asks for. Returns the address with the answer. */
async function allow(uid: string, asked: URL): Promise<URL> {
  assert.equal(asked.origin + asked.pathname, `${BASE_URL}/oauth/authorize`);
  assert.equal(asked.searchParams.get("resource"), `${BASE_URL}/mcp`);
  const page = await signedIn(uid);
  const { redirectTo } = await page("/authorizations", { query: asked.search, decision: "allow", expiresDays: 1 });
  const answer = new URL(redirectTo);
  assert.deepEqual([answer.origin + answer.pathname, answer.searchParams.get("state"), answer.searchParams.get("iss")], [asked.searchParams.get("redirect_uri"), asked.searchParams.get("state"), BASE_URL]);
  return answer;
}

/** The apps of a person, and how many scopes each has. */
async function apps(uid: string): Promise<[string, number][]> {
  const { apps } = await admin<{ apps: { name: string; scopes: string[] }[] }>("app", "list", "--account", uid);
  return apps.map(({ name, scopes }) => [name, scopes.length]);
}

interface Connection {
  finishAuth: (code: string, iss: string) => Promise<void>;
  connect: () => Promise<void>;
  names: () => Promise<string[]>;
  close: () => Promise<void>;
}

type Connect = (provider: Provider) => Connection;

const KINDS: Record<string, Connect> = {
  "@modelcontextprotocol/sdk": (provider) => {
    const transport = new Http1(new URL(`${BASE_URL}/mcp`), { authProvider: provider as never });
    const client = new Client1({ name: "t", version: "1" });
    return {
      finishAuth: (code) => transport.finishAuth(code),
      connect: () => client.connect(transport as never),
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      close: () => client.close(),
    };
  },
  "@modelcontextprotocol/client": (provider) => {
    const transport = new Http2(new URL(`${BASE_URL}/mcp`), { authProvider: provider as never });
    const client = new Client2({ name: "t", version: "1" });
    return {
      finishAuth: (code, iss) => transport.finishAuth(code, iss),
      connect: () => client.connect(transport),
      names: async () => (await client.listTools()).tools.map(({ name }) => name),
      close: () => client.close(),
    };
  },
};

for (const [name, connect] of Object.entries(KINDS)) {
  test(`${name} connects from the address alone`, async () => {
    const { uid } = await stranger();
    const provider = new Provider();
    const first = connect(provider);
    await assert.rejects(first.connect(), /Unauthorized/);
    assert(provider.asked && provider.registered?.client_id.startsWith("cbi_"));
    assert.equal(provider.asked.searchParams.get("state"), "a-state");
    const answer = await allow(uid, provider.asked);
    await first.finishAuth(answer.searchParams.get("code") ?? "", BASE_URL);
    await first.close();

    const second = connect(provider);
    await second.connect();
    assert((await second.names()).includes("canvas_edit"));
    await second.close();

    // An access token that is refused is refreshed without the person.
    const { access_token: before } = provider.kept ?? { access_token: "" };
    provider.kept = { ...provider.kept, access_token: `cba_${before.slice(4, 40)}.${"A".repeat(43)}`, token_type: "Bearer" };
    provider.asked = undefined;
    const third = connect(provider);
    await third.connect();
    assert((await third.names()).length > 10);
    await third.close();
    assert.equal(provider.asked, undefined);
    assert.notEqual(provider.kept?.access_token, before);
    assert.deepEqual(await apps(uid), [["MCP test host", 8]]);
  });
}

interface Got {
  client: string;
  /** How often it sent the person to the authorization server. */
  asked: number;
  tools: string[];
  /** Whether it got the same tools at its next start. */
  again: boolean;
  refreshed: boolean;
  created: { isError?: boolean; structuredContent: { canvas: string } };
}

for (const version of [1, 2]) {
  test(`mcp ${version} for Python connects from the address alone`, { timeout: 60_000 }, async () => {
    const { uid, token } = await stranger();
    const python = `${env["CANVAS_MCP_PYTHON"]}${version}/bin/python`;
    const host = spawn(python, [join(import.meta.dirname, "python/host.py"), `${BASE_URL}/mcp`], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      const lines = createInterface(host.stdout)[Symbol.asyncIterator]();
      const line = async (): Promise<string> => {
        const { value, done } = await lines.next();
        assert(done !== true, "it has failed");
        return value;
      };
      host.stdin.write(`${(await allow(uid, new URL(await line()))).href}\n`);
      const got = JSON.parse(await line()) as Got;
      assert(got.client.startsWith("cbi_") && got.tools.includes("canvas_edit"));
      assert.deepEqual([got.asked, got.again, got.refreshed, got.created.isError], [1, true, true, false]);
      const { canvas } = await send<{ canvas: { title: string } }>("GET", `/canvases/${got.created.structuredContent.canvas}`, undefined, token);
      assert.equal(canvas.title, "From Python");
      assert.deepEqual(await apps(uid), [["MCP test host", 8]]);
    } finally {
      host.kill();
    }
  });
}

/** What the scenarios for authorization servers check, which came with version 0.2 of the suite. */
const CHECKS = {
  "authorization-code-grant": "SUCCESS",
  "authorization-server-metadata": "SUCCESS",
  // Clients register, because the server reads no client metadata documents.
  "authorization-server-metadata-cimd": "WARNING",
};

test("the scenarios of the conformance suite for authorization servers pass", { timeout: 60_000 }, async () => {
  const { uid } = await stranger();
  const port = await freePort();
  const redirectUri = `http://127.0.0.1:${port}/callback`;
  const metadata = { client_name: "Conformance suite", redirect_uris: [redirectUri] };
  const registration = await fetch(`${BASE_URL}/oauth/register`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(metadata) });
  const { client_id: client } = (await registration.json()) as { client_id: string };
  const results = `${env["CANVAS_CONFORMANCE"]}-authorization`;
  await rm(results, { recursive: true, force: true });
  const program = join(import.meta.dirname, "node_modules/conformance-of-authorization/dist/index.js");
  const options = ["--url", BASE_URL, "--client-id", client, "--resource", `${BASE_URL}/mcp`, "--port", String(port), "--output-dir", results];
  const suite = spawn(execPath, [program, "authorization", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const ended = once(suite, "exit");
    // It prints the address for the person among other lines.
    for await (const line of createInterface(suite.stdout)) {
      if (line.startsWith(`${BASE_URL}/oauth/authorize?`)) await fetch(await allow(uid, new URL(line)));
    }
    assert.deepEqual(await ended, [0, null]);
    const texts = await Promise.all((await readdir(results)).map((directory) => readFile(join(results, directory, "checks.json"), "utf8")));
    const checks = texts.flatMap((text) => JSON.parse(text) as { id: string; status: string }[]);
    assert.deepEqual(Object.fromEntries(checks.map(({ id, status }) => [id, status])), CHECKS);
  } finally {
    suite.kill();
  }
});
