/** The tools with the clients of the protocol's own makers: over /mcp of two gateways in turns, and over `canvas mcp`, at each version. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { ownGateway } from "../browser/processes.ts";
import { admin, BASE_URL, person, png, SHOP_URL, TOKEN } from "../browser/service.ts";
import { type Balancer, balancer } from "./balancer.ts";
import { type Host, type Kind, KINDS, type Part, type Progress, STATELESS, type Tool } from "./hosts.ts";

type Value = Record<string, unknown>;

const NAMES = [
  ...["status", "find", "describe", "canvas_create", "canvas_read", "canvas_view", "canvas_edit", "canvas_delete", "canvas_review", "asset_upload", "asset_download", "import_url"],
  ...["action_run", "image_generate", "video_generate", "video_keep", "recipe_run", "workflow_create", "run_wait", "run_cancel", "element_save", "element_manage"],
];
const READING = ["status", "find", "describe", "canvas_read", "canvas_view", "canvas_review", "asset_download"];
/** A model of the account's own connection: its simulator does what the prompt says. */
const MODEL = "gpt-image-2";
const TEXT_MAX = 32 * 1024;

let balance: Balancer;
let gateway: Awaited<ReturnType<typeof ownGateway>>;
let root: string;
let reader: string;

/** Calls a tool, which has to succeed. Returns its value and what a model sees. */
async function seen(host: Host, name: string, args: object = {}, onprogress?: (progress: Progress) => void): Promise<{ value: Value; content: Part[] }> {
  const { content, isError, structuredContent } = await host.call(name, args, onprogress && { onprogress });
  const text = content[0]?.text ?? "";
  assert(isError !== true && structuredContent, `${name}: ${text}`);
  assert(text.length > 0 && Buffer.byteLength(text) <= TEXT_MAX, `${name}: a text`);
  return { value: structuredContent, content };
}

const ok = async (host: Host, name: string, args: object = {}): Promise<Value> => (await seen(host, name, args)).value;

/** Calls a tool, which has to fail, and returns what it says. */
async function fails(host: Host, name: string, args: object, code: string): Promise<{ error: Value & { fields?: { field: string }[] }; next: { tool: string; arguments: object }[]; retry: Value }> {
  const { content, isError, structuredContent } = await host.call(name, args);
  assert(isError === true && structuredContent === undefined, `${name} fails: ${JSON.stringify(content)}`);
  const told = JSON.parse(content[0]?.text ?? "") as Awaited<ReturnType<typeof fails>>;
  assert.equal(told.error["code"], code, JSON.stringify(told));
  return told;
}

/** A request that has to be refused by the protocol, with this code. */
const refused = (request: Promise<unknown>, code: number) => assert.rejects(request, (error: { code?: unknown }) => error.code === code);

const image = (parts: Part[]) => parts.find(({ type }) => type === "image");

/** A new canvas with a text on it. */
async function page(host: Host): Promise<{ canvas: string; title: string; revision: string; node: string }> {
  const title = `Page ${randomUUID()}`;
  const { canvas, revision } = await ok(host, "canvas_create", { title });
  const operations = [{ type: "node.create", clientId: "text", node: { type: "text", metadata: { content: "Boots" } } }];
  const edited = await ok(host, "canvas_edit", { canvas, revision, operations });
  return { canvas, title, revision: edited["revision"], node: (edited["created"] as Value)["text"] } as Awaited<ReturnType<typeof page>>;
}

/** A new canvas with an image on it. */
async function board(host: Host): Promise<{ canvas: string; title: string; revision: string; node: string; asset: string }> {
  const title = `Board ${randomUUID()}`;
  const { canvas } = await ok(host, "canvas_create", { title });
  const data = Buffer.from(png(320, 240)).toString("base64");
  const { revision, node, asset } = await ok(host, "asset_upload", { canvas, data, name: `${randomUUID()}.png` });
  return { canvas, title, revision, node, asset } as Awaited<ReturnType<typeof board>>;
}

const newest = async (host: Host, canvas: string) => (await ok(host, "canvas_read", { canvas }))["revision"];

/** `canvas://<owner>/<id>` of the canvas with this title, as it is listed. */
async function addressOf(host: Host, title: string): Promise<string> {
  const [, address] = /^(canvas:\/\/[^/]+\/[^/]+)\/outline$/.exec((await host.resources()).find((one) => one.title === title)?.uri ?? "") ?? [];
  assert(address, `${title} is listed`);
  return address;
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const begin = Date.now(); !(await holds()); ) {
    assert(Date.now() - begin < 20_000, `in time: ${what}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

const connect = (kind: Kind, token = TOKEN) => kind.connect(balance.url, token, root);

/** The list of the first host. */
let first: Tool[] | undefined;

function cases(kind: Kind): void {
  let host: Host;
  let tools: Tool[];

  before(async () => {
    host = await connect(kind);
    tools = await host.tools();
  });
  after(() => host?.close());

  test("the server says who it is", () => {
    assert.equal(host.protocol, kind.version);
    assert.equal(host.server?.name, "canvas-service");
    assert.match(host.server?.icons?.[0]?.src ?? "", /^http.*\/icon\.svg$/);
    assert(host.instructions?.includes("Begin with status"));
    // Only what is offered may be called.
    assert.equal(host.capabilities?.resources?.subscribe ?? false, kind.version === STATELESS);
  });

  test("all tools are listed, the same everywhere", () => {
    assert.deepEqual(tools.map(({ name }) => name), NAMES);
    for (const { name, description, outputSchema } of tools) assert(description && outputSchema === undefined, name);
    const ofLocal = ["paths", "into"], ofRemote = ["files", "expiresInSeconds"];
    const upload = tools.find(({ name }) => name === "asset_upload");
    assert.equal("paths" in (upload?.inputSchema.properties ?? {}), kind.isLocal);
    assert.equal("files" in (upload?.inputSchema.properties ?? {}), !kind.isLocal);
    const shared = structuredClone(tools);
    for (const { inputSchema } of shared) for (const name of [...ofLocal, ...ofRemote]) delete inputSchema.properties?.[name];
    first ??= shared;
    assert.deepEqual(shared, first);
  });

  test("a repeated call is a replay, also at another gateway", async () => {
    const { canvas, revision, node } = await page(host);
    const edit = { canvas, revision, operations: [{ type: "node.update", nodeId: node, patch: { title: "Boot" } }] };
    const once = await ok(host, "canvas_edit", edit);
    const again = await ok(host, "canvas_edit", edit);
    assert.deepEqual([once["replayed"], again["replayed"], again["revision"]], [false, true, once["revision"]]);
    if (kind.isLocal) return;
    const counts = balance.answered(host.id);
    assert(counts.length === 2 && Math.max(...counts) - Math.min(...counts) <= 1, `in turns: ${counts}`);
  });

  test("errors say what to do next", async () => {
    const wrong = await fails(host, "image_generate", { canvas: "c", mode: "dream", count: 99 }, "input_validation_error");
    assert.deepEqual(wrong.error.fields?.map(({ field }) => field).toSorted(), ["count", "mode", "revision"]);
    const missing = await fails(host, "canvas_read", { canvas: `canvas:none:${randomUUID()}` }, "not_found");
    assert.deepEqual([missing.next[0]?.tool, missing.retry["when"]], ["find", "with_changes"]);
    const { canvas, revision, node } = await page(host);
    const rename = (title: string) => ({ canvas, revision, operations: [{ type: "node.update", nodeId: node, patch: { title } }] });
    const { revision: current } = await ok(host, "canvas_edit", rename("One"));
    const stale = await fails(host, "canvas_edit", rename("Two"), "conflict");
    assert.equal((stale.error["details"] as Value)["currentRevision"], current);
    assert.equal(stale.next[0]?.tool, "canvas_read");
    await ok(host, stale.next[0]?.tool ?? "", stale.next[0]?.arguments);
    await refused(host.call("rm", {}), -32602);
  });

  test("a token that may only read has the tools for that", async () => {
    const other = await connect(kind, reader);
    assert.deepEqual((await other.tools()).map(({ name }) => name), READING);
    const told = await fails(other, "canvas_create", {}, "forbidden");
    assert.equal(told.retry["when"], "never");
    await other.close();
  });

  test("resources are listed and read", async () => {
    const { canvas, title, revision, node, asset } = await board(host);
    const steps = [{ action: "rotate", params: { degrees: 90 } }];
    const [{ run } = {}] = (await ok(host, "action_run", { canvas, revision, inputs: [node], steps }))["runs"] as Value[];
    const address = await addressOf(host, title);
    assert.equal((await host.templates()).length, 5);
    for (const [uri, type, holds] of [
      [`${address}/outline`, "text/plain", /2 nodes/],
      [`${address}/review`, "application/json", /doneClaimAllowed/],
      [`${address}/render.png`, "image/png", /^iVBOR/],
      [`canvas://${canvas}/render.png`, "image/png", /^iVBOR/],
      [`canvas://asset/${asset.slice("asset:".length).replace(":", "/")}`, "image/jpeg", /^\/9j\//],
      [`canvas://run/${String(run).slice("run:".length)}`, "application/json", /succeeded/],
      ["skill://canvas/deliver/SKILL.md", "text/markdown", /^---\nname: deliver\n/],
    ] as const) {
      const [contents] = await host.read(uri);
      assert.deepEqual([contents?.uri, contents?.mimeType], [uri, type]);
      assert.match(contents?.text ?? contents?.blob ?? "", holds, uri);
    }
    // Since 2026-07-28, what is not found is an invalid parameter.
    const code = kind.version === STATELESS ? -32602 : -32002;
    for (const uri of ["canvas://none/none/outline", "canvas://a/b/c/d", "file:///etc/passwd"]) await refused(host.read(uri), code);
  });

  test("prompts are listed and filled in", async () => {
    assert.deepEqual((await host.prompts()).map(({ name }) => name), ["moodboard", "product-shots", "storyboard", "tidy-and-finish", "hand-over", "deliver"]);
    assert.match(await host.prompt("moodboard", { canvas: "canvas:a:b", brief: "quiet" }), /"canvas:a:b"[^]*"quiet"/);
    await refused(host.prompt("moodboard", {}), -32602);
    await refused(host.prompt("none", {}), -32602);
  });

  test("canvases of prompts are completed", async () => {
    const { canvas } = await page(host);
    assert(host.capabilities?.completions);
    assert.deepEqual(await host.complete("moodboard", "canvas", canvas), [canvas]);
    await refused(host.complete("none", "canvas", ""), -32602);
  });

  test("progress is told until the end", async () => {
    const { canvas, revision, node } = await board(host);
    const told: Progress[] = [];
    const args = { canvas, revision, inputs: [node], steps: [{ action: "rotate", params: { degrees: 90 } }] };
    const { value } = await seen(host, "action_run", args, (progress) => told.push(progress));
    const [run = {}] = value["runs"] as Value[];
    assert.equal(run["status"], "succeeded");
    assert(told.length > 0);
    assert.deepEqual(told.map(({ progress }) => progress), told.map(({ progress }) => progress).toSorted((one, other) => one - other), "it never falls");
    for (const { progress, total } of told) assert(total === 1 && progress >= 0 && progress <= total, "outputs that are made");
    for (const { message } of told) assert(message?.startsWith(String(run["run"])), message);
  });

  if (kind.version === STATELESS) {
    test("changes of a canvas are told to who follows it", async () => {
      const { canvas, title, revision } = await page(host);
      const uri = `${await addressOf(host, title)}/outline`;
      const told: string[] = [];
      const stream = await host.follow([uri, "https://elsewhere.example"], (changed) => told.push(changed));
      assert.deepEqual(stream.accepted, [uri]);
      await until("the present state", () => told.length >= 1);
      await ok(host, "canvas_edit", { canvas, revision, operations: [{ type: "canvas.update", title: "New" }] });
      await until("the change", () => told.length >= 2);
      assert(told.every((changed) => changed === uri));
      await stream.close();
    });
  }

  if (kind.isLocal) {
    test("local files below the root are uploaded", async () => {
      const { assets } = await ok(host, "asset_upload", { paths: ["boot.png"] });
      assert.deepEqual((assets as Array<{ name: string; width: number }>).map(({ name, width }) => [name, width]), [["boot.png", 30]]);
      for (const path of ["../boot.png", "/etc/passwd"]) {
        const { error } = await fails(host, "asset_upload", { paths: [path] }, "input_validation_error");
        assert.equal(error.fields?.[0]?.field, "paths[0]");
      }
    });
  }

  test("the client has nothing to complain about", () => {
    // At the end of a stream the client closes it and sends a notification, over HTTP without the headers of its version.
    const complaints = host.complaints.filter((complaint) => !complaint.includes("missing required Mcp-Method header"));
    assert.deepEqual(complaints, []);
  });
}

/** What costs more, for the newest version of each lifecycle. */
function furtherCases(kind: Kind): void {
  let host: Host;

  before(async () => {
    host = await connect(kind);
  });
  after(() => host?.close());

  test("every tool succeeds", async () => {
    const called = new Set<string>();
    const call = async (name: string, args: object = {}): Promise<Value & { content: Part[] }> => {
      const { value, content } = await seen(host, name, args);
      called.add(name);
      // Where a canvas is in an answer, its page is as well.
      const on = value["canvas"];
      assert(on === undefined || (/^~/.test(String(on)) && String(value["url"]).endsWith(`/c/${on}`)), `${name}: ${JSON.stringify(value)}`);
      return { ...value, content };
    };
    const title = `Board ${randomUUID()}`;
    const { canvas } = await call("canvas_create", { title });
    const stored = await call("asset_upload", { canvas, data: Buffer.from(png(320, 240)).toString("base64"), name: `${randomUUID()}.png` });
    const note = { type: "node.create", clientId: "note", node: { type: "text", metadata: { content: "say \"done\"" } } };
    const edited = await call("canvas_edit", { canvas, revision: stored["revision"], operations: [note] });
    assert.deepEqual([stored["node"], edited["created"]], ["n1", { note: "n2" }]);
    assert.match(String((await call("canvas_read", { canvas }))["outline"]), /say \\"done\\"/);
    assert.equal((await call("canvas_review", { canvas }))["doneClaimAllowed"], true);
    assert(image((await call("canvas_view", { canvas, width: 256 })).content)?.data?.startsWith("iVBOR"));
    assert.equal(((await call("find", { kind: "canvas", query: title }))["items"] as Value[])[0]?.["canvas"], canvas);
    assert.equal((await call("describe", { handle: stored["asset"] }))["kind"], "asset");
    assert.equal((await call("import_url", { canvas, url: `${SHOP_URL}/boots.png`, as: "image" }))["status"], "succeeded");
    const revision = await newest(host, String(canvas));
    const acted = await call("action_run", { canvas, revision, inputs: [stored["node"]], steps: [{ action: "resize", params: { width: 100 } }] });
    assert((acted["runs"] as Value[])[0]?.["status"] === "succeeded" && image(acted.content) && acted.content.some(({ type }) => type === "resource_link"));
    const made = await call("image_generate", { canvas, revision, mode: "generate", model: MODEL, prompt: "a harbor", count: 2, wait: 0 });
    const waited = await call("run_wait", { runs: [made["run"]] });
    assert.equal((waited["runs"] as Value[])[0]?.["status"], "succeeded");
    const video = await call("video_generate", { model: "animatic", prompt: `a walk ${randomUUID()}`, durationSeconds: 1, wait: 0 });
    assert.equal((await call("run_cancel", { run: video["run"] }))["run"], video["run"]);
    const clip = await call("video_generate", { model: "animatic", prompt: `a turn ${randomUUID()}`, durationSeconds: 1 });
    assert.match(String((await call("video_keep", { job: clip["run"] }))["asset"]), /^asset:/);
    const topic = { key: "topic", label: "Topic", type: "text", useAsDefault: false };
    const line = { key: "line", label: "Line", type: "text", prompt: "One line on {{topic}}", inputKeys: ["topic"] };
    const workflow = await call("workflow_create", { canvas, name: "Line", inputs: [topic], outputs: [line] });
    const run = await call("recipe_run", { canvas, revision: workflow["revision"], recipe: workflow["recipe"], inputs: { topic: "rope" } });
    assert.equal(typeof (run["outputs"] as Value[])[0]?.["text"], "string");
    assert.deepEqual((await call("canvas_delete", { canvas, revision: await newest(host, String(canvas)), nodes: ["n2"] }))["deletedNodes"], ["n2"]);
    await call("asset_download", { items: [stored["asset"]], ...(kind.isLocal && { into: "saved" }) });
    await call("element_save", { name: title, type: "style", guidelines: "quiet" });
    await call("element_manage", { do: "collection.create", target: title });
    assert.equal(typeof (await call("status"))["account"], "string");
    assert.deepEqual(NAMES.filter((name) => !called.has(name)), []);
  });

  test("twenty calls at once are all answered", async () => {
    const { canvas } = await page(host);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => (at % 2 ? ok(host, "canvas_read", { canvas }) : ok(host, "find", { kind: "action" }))));
    assert.equal(answers.filter((answer) => answer["canvas"] === canvas).length, 10);
  });

  test("a canceled call ends, and its work goes on", async () => {
    const { canvas, revision } = await page(host);
    const { run } = await ok(host, "image_generate", { canvas, revision, mode: "generate", model: MODEL, prompt: "[[sim:hang]]", wait: 0 });
    const state = async () => ((await ok(host, "describe", { handle: run }))["facts"] as Value)["status"];
    await until("it runs", async () => (await state()) === "running");
    const waiting = await connect(kind);
    // What is open: the message itself, or the request of the tool to the service.
    const open = () => balance.isOpen(kind.isLocal ? String(run) : `${waiting.id} POST`);
    const stop = new AbortController();
    const call = waiting.call("run_wait", { runs: [run], seconds: 30 }, { signal: stop.signal });
    call.catch(() => undefined);
    await until("it waits", open);
    stop.abort("enough");
    await assert.rejects(call, /enough/);
    if (kind.isLocal || kind.version === STATELESS) {
      await until("the wait has ended", () => !open());
      assert.equal((await ok(waiting, "describe", { handle: run }))["kind"], "run", "it still answers");
      await waiting.close();
    } else {
      // Without a session, no call can be named by another message: the wait ends with the connection.
      await waiting.close();
      await until("the wait has ended", () => !open());
    }
    assert.equal(await state(), "running");
    await ok(host, "run_cancel", { run });
    const { runs } = await ok(host, "run_wait", { runs: [run] });
    assert.equal((runs as Value[])[0]?.["status"], "canceled");
  });

  test("a token that is none is told so", async () => {
    const invalid = `${TOKEN}x`;
    if (!kind.isLocal) return assert.rejects(connect(kind, invalid), /valid bearer token|HTTP 401/);
    // The server is this machine's: it answers, and the service refuses each of its requests.
    const other = await connect(kind, invalid);
    const told = await fails(other, "status", {}, "unauthorized");
    assert.equal(told.retry["when"], "never");
    await refused(other.tools(), -32603);
    await other.close();
  });
}


// Hosts wait more than they compute. The cases of one host follow each other.
describe("clients", { concurrency: 4 }, () => {
  before(async () => {
    root = await mkdtemp(join(tmpdir(), "canvas-mcp-"));
    await writeFile(join(root, "boot.png"), png(30, 20));
    balance = await balancer();
    gateway = await ownGateway();
    balance.to(BASE_URL, gateway.url);
    ({ token: reader } = await admin<{ token: string }>("token", "create", "--account", person.uid, "--label", "mcp reader", "--scopes", "canvas:read,asset:read"));
  });

  after(async () => {
    await gateway?.kill();
    balance?.close();
    await rm(root, { recursive: true, force: true });
  });

  for (const kind of KINDS) {
    describe(kind.name, { concurrency: 1 }, () => {
      cases(kind);
      if (kind.isNewest) furtherCases(kind);
    });
  }
});
