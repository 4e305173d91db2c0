/** The protocol's own clients connect from the address alone: they find the authorization server, register, and get and refresh their tokens. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client as Client2, StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { admin, BASE_URL, signInLink, stranger } from "../browser/service.ts";

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
    assert.equal(provider.asked.origin + provider.asked.pathname, `${BASE_URL}/oauth/authorize`);
    assert.equal(provider.asked.searchParams.get("resource"), `${BASE_URL}/mcp`);

    const page = await signedIn(uid);
    const { redirectTo } = await page("/authorizations", { query: provider.asked.search, decision: "allow", expiresDays: 1 });
    const answer = new URL(redirectTo);
    assert.deepEqual([answer.origin + answer.pathname, answer.searchParams.get("state"), answer.searchParams.get("iss")], [REDIRECT, "a-state", BASE_URL]);
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

    const { apps } = await admin<{ apps: { name: string; scopes: string[] }[] }>("app", "list", "--account", uid);
    assert.deepEqual(apps.map((app) => [app.name, app.scopes.length]), [["MCP test host", 8]]);
  });
}
