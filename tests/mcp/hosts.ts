/** Hosts: programs that use the tools by a client of the protocol's own makers. */
import { randomUUID } from "node:crypto";
import { env } from "node:process";

import { Client as Client2, type ClientOptions, StreamableHTTPClientTransport as Http2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { CLIENT } from "./balancer.ts";

export const STATELESS = "2026-07-28";
const WITH_HANDSHAKE = "2025-11-25";

export interface Tool {
  name: string;
  description?: string | undefined;
  inputSchema: { properties?: Record<string, object> | undefined };
  outputSchema?: object | undefined;
}

export interface Part {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
}

export interface Result {
  content: Part[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
}

export interface Progress {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}

interface Options {
  signal?: AbortSignal;
  onprogress?: (progress: Progress) => void;
}

/** What a client can do, whichever it is. */
export interface Host {
  /** The name that its messages have at the balancer; over standard streams they have none. */
  id: string;
  protocol: string | undefined;
  server: { name: string; icons?: { src: string }[] | undefined } | undefined;
  instructions: string | undefined;
  capabilities: { resources?: { subscribe?: boolean | undefined } | undefined; completions?: object | undefined } | undefined;
  /** What the client complains about. */
  complaints: string[];
  tools: () => Promise<Tool[]>;
  call: (name: string, args: object, options?: Options) => Promise<Result>;
  resources: () => Promise<{ uri: string; title?: string | undefined }[]>;
  templates: () => Promise<{ uriTemplate: string }[]>;
  read: (uri: string) => Promise<{ uri: string; mimeType?: string | undefined; text?: string; blob?: string }[]>;
  /** Since 2026-07-28: calls `told` for each change of `uris`. */
  follow: (uris: string[], told: (uri: string) => void) => Promise<{ accepted: string[]; close: () => Promise<void> }>;
  prompts: () => Promise<{ name: string }[]>;
  prompt: (name: string, args: Record<string, string>) => Promise<string>;
  /** The values of the argument of a prompt that begin with what was typed. */
  complete: (prompt: string, argument: string, typed: string) => Promise<string[]>;
  close: () => Promise<void>;
}

export interface Kind {
  name: string;
  version: string;
  isLocal: boolean;
  /** Whether it is the newest version of those with a handshake, or of those without. */
  isNewest: boolean;
  /** A host of the service at `url`. Over standard streams, it may read the files below `root`. */
  connect: (url: string, token: string, root: string) => Promise<Host>;
}

const INFO = { name: "canvas-mcp-tests", version: "1" };

/** The streams of `canvas mcp`. */
const command = (url: string, token: string, root: string) => ({
  command: env["CANVAS_BIN"] ?? "canvas",
  args: ["mcp", "--root", root],
  env: { CANVAS_BASE_URL: url, CANVAS_TOKEN: token },
  stderr: "inherit" as const,
});

const headers = (id: string, token: string) => ({ requestInit: { headers: { Authorization: `Bearer ${token}`, [CLIENT]: id } } });

/** What both clients do alike. */
const alike = (client: Client1 | Client2) => ({
  server: client.getServerVersion(),
  instructions: client.getInstructions(),
  capabilities: client.getServerCapabilities(),
  tools: async () => (await client.listTools()).tools as Tool[],
  resources: async () => (await client.listResources()).resources,
  templates: async () => (await client.listResourceTemplates()).resourceTemplates,
  read: async (uri: string) => (await client.readResource({ uri })).contents,
  prompts: async () => (await client.listPrompts()).prompts,
  async prompt(name: string, args: Record<string, string>) {
    const { messages } = await client.getPrompt({ name, arguments: args });
    return messages.map(({ content }) => (content.type === "text" ? content.text : "")).join("\n");
  },
  async complete(name: string, argument: string, typed: string) {
    const { completion } = await client.complete({ ref: { type: "ref/prompt", name }, argument: { name: argument, value: typed } });
    return completion.values;
  },
  close: () => client.close(),
});

/** `@modelcontextprotocol/sdk`, which knows the versions up to 2025-11-25. */
async function sdk1(url: string, token: string, root: string | undefined): Promise<Host> {
  const id = randomUUID();
  const complaints: string[] = [];
  const client = new Client1(INFO);
  client.onerror = ({ message }) => complaints.push(message);
  const transport = root === undefined ? new Http1(new URL(`${url}/mcp`), headers(id, token)) : new Stdio1(command(url, token, root));
  // The client tells its transport which version was agreed on. That of standard streams does not keep it.
  let protocol: string | undefined;
  if (transport instanceof Stdio1) Object.assign(transport, { setProtocolVersion: (version: string) => (protocol = version) });
  // Its types are not written for exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<Client1["connect"]>[0]);
  return {
    ...alike(client),
    id,
    protocol: transport instanceof Http1 ? transport.protocolVersion : protocol,
    complaints,
    call: async (name, args, options) => (await client.callTool({ name, arguments: { ...args } }, undefined, options)) as Result,
    follow: () => Promise.reject(new Error("it does not know subscriptions/listen")),
  };
}

/** `@modelcontextprotocol/client`, which knows every version. */
async function client2(version: string, url: string, token: string, root: string | undefined): Promise<Host> {
  const id = randomUUID();
  const complaints: string[] = [];
  const options: ClientOptions = version === STATELESS ? { versionNegotiation: { mode: { pin: version } } } : { supportedProtocolVersions: [version] };
  const client = new Client2(INFO, options);
  client.onerror = ({ message }) => complaints.push(message);
  await client.connect(root === undefined ? new Http2(new URL(`${url}/mcp`), headers(id, token)) : new Stdio2(command(url, token, root)));
  return {
    ...alike(client),
    id,
    protocol: client.getNegotiatedProtocolVersion(),
    complaints,
    call: async (name, args, options) => (await client.callTool({ name, arguments: { ...args } }, options)) as Result,
    async follow(uris, told) {
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => told(params.uri));
      const stream = await client.listen({ resourceSubscriptions: uris });
      return { accepted: stream.honoredFilter.resourceSubscriptions ?? [], close: () => stream.close() };
    },
  };
}

const over = (version: string, isLocal: boolean): Kind => ({
  name: `client 2, ${isLocal ? "canvas mcp" : "/mcp"}, ${version}`,
  version,
  isLocal,
  isNewest: version === STATELESS || version === WITH_HANDSHAKE,
  connect: (url, token, root) => client2(version, url, token, isLocal ? root : undefined),
});

const overSdk1 = (isLocal: boolean): Kind => ({
  name: `SDK 1, ${isLocal ? "canvas mcp" : "/mcp"}, ${WITH_HANDSHAKE}`,
  version: WITH_HANDSHAKE,
  isLocal,
  isNewest: true,
  connect: (url, token, root) => sdk1(url, token, isLocal ? root : undefined),
});

export const KINDS: Kind[] = [
  overSdk1(false),
  overSdk1(true),
  over("2025-03-26", false),
  over("2025-06-18", false),
  over(WITH_HANDSHAKE, false),
  over(WITH_HANDSHAKE, true),
  over(STATELESS, false),
  over(STATELESS, true),
];
