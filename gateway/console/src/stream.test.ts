import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff, type Message, parser, RUNS, Stream } from "./stream.ts";

const parsed = (...pieces: string[]) => {
  const messages: Message[] = [];
  const parse = parser((message) => messages.push(message));
  pieces.forEach(parse);
  return messages;
};

test("events are parsed however the stream is cut", () => {
  const text = ': hello\n\nevent: canvas\ndata: {"canvas":"canvas:a:b","revision":"r1"}\n\nevent:gone\r\ndata:{"canvas":"canvas:a:c"}\r\n\r\n';
  const expected = [
    { event: "canvas", canvas: "canvas:a:b", revision: "r1" },
    { event: "gone", canvas: "canvas:a:c" },
  ];
  for (let cut = 0; cut <= text.length; cut += 1) {
    assert.deepEqual(parsed(text.slice(0, cut), text.slice(cut)), expected, `cut at ${cut}`);
  }
  assert.deepEqual(parsed(...text), expected, "character by character");
});

test("unknown events, comments and unfinished events are ignored", () => {
  assert.deepEqual(parsed("event: other\ndata: {}\n\n", "event: canvas\n\n", ': x\n\nevent: canvas\ndata: {"canvas":"a"}'), []);
});

test("the pause between attempts grows to 30 s", () => {
  assert.equal(backoff(0, 1), 500);
  assert.equal(backoff(1, 0), 500);
  assert.equal(backoff(20, 1), 30_000);
  assert.equal(backoff(20, 0), 15_000);
});

/** A service that answers one stream after another, and what it and the listeners saw. */
function service(...answers: ((sent: ReadableStreamDefaultController<Uint8Array>) => void | Response)[]) {
  const opened: string[][] = [];
  const heard: Message[] = [];
  let open = 0;
  const stream = new Stream(
    (canvases, signal) => {
      opened.push(canvases);
      open += 1;
      signal.addEventListener("abort", () => (open -= 1));
      let response: Response | undefined;
      const body = new ReadableStream<Uint8Array>({
        start(sent) {
          response = answers[opened.length - 1]?.(sent) ?? undefined;
          signal.addEventListener("abort", () => sent.error(signal.reason));
        },
      });
      return Promise.resolve(response ?? new Response(body));
    },
    (message) => heard.push(message),
  );
  return { stream, opened, heard, isOpen: () => open > 0 };
}

const bytes = (text: string) => new TextEncoder().encode(text);
const canvasEvent = (canvas: string, revision: string) => bytes(`event: canvas\ndata: ${JSON.stringify({ canvas, revision })}\n\n`);

const gone = (canvas: string) => bytes(`event: gone\ndata: ${JSON.stringify({ canvas })}\n\n`);
const missing = () => Response.json({ error: { code: "not_found", message: "No such canvas." } }, { status: 404 });

async function until(what: () => boolean): Promise<void> {
  const deadline = Date.now() + 5000;
  while (!what()) {
    assert.ok(Date.now() < deadline, what.toString());
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

test("canvases share one connection, which ends with the last follower", async () => {
  const { stream, opened, heard, isOpen } = service((sent) => sent.enqueue(canvasEvent("b", "1")));
  stream.do({ follow: "b" });
  stream.do({ follow: "a" });
  stream.do({ follow: "b" });
  await until(() => heard.some((message) => message.event === "canvas"));
  assert.deepEqual(opened, [["a", "b"]]);
  assert.deepEqual(stream.present("b"), [
    { event: "state", state: "live" },
    { event: "canvas", canvas: "b", revision: "1" },
  ]);
  stream.do({ unfollow: "b" });
  assert.equal(opened.length, 1, "another follower remains");
  stream.do({ unfollow: "b" });
  stream.do({ unfollow: "a" });
  assert.equal(isOpen(), false);
  stream.do({ unfollow: "a" });
});

const role = (accessRole: string) => bytes(`event: role\ndata: ${JSON.stringify({ canvas: "a", accessRole })}\n\n`);

test("a new listener hears the role that the person has now, and none after the canvas is left", async () => {
  const { stream, heard } = service((sent) => {
    sent.enqueue(role("editor"));
    sent.enqueue(role("viewer"));
  });
  stream.do({ follow: "a" });
  await until(() => heard.filter(({ event }) => event === "role").length === 2);
  assert.deepEqual(stream.present("a").at(-1), { event: "role", canvas: "a", accessRole: "viewer" });
  stream.do({ unfollow: "a" });
  assert.equal(stream.present("a").length, 1);
});

test("a stream that ends or is refused is opened again", async () => {
  const { stream, opened, heard } = service(
    (sent) => {
      sent.enqueue(canvasEvent("a", "1"));
      sent.close();
    },
    () => Response.json({ error: { code: "forbidden", message: "The session lacks a scope." } }, { status: 403 }),
    (sent) => sent.enqueue(canvasEvent("a", "2")),
  );
  stream.do({ follow: "a" });
  await until(() => heard.some((message) => message.event === "state" && message.state === "interrupted"));
  stream.do({ reopen: true });
  await until(() => heard.some((message) => message.event === "refused"));
  stream.do({ reopen: true });
  await until(() => heard.some((message) => "revision" in message && message.revision === "2"));
  assert.equal(opened.length, 3);
  assert.deepEqual(
    heard.filter((message) => message.event !== "canvas"),
    [
      { event: "state", state: "live" },
      { event: "state", state: "interrupted", since: heard.find((message) => "since" in message)?.since },
      { event: "refused", status: 403 },
      { event: "state", state: "live" },
    ],
  );
  stream.do({ unfollow: "a" });
});

test("a canvas that is gone is not followed any more, until it is followed anew", async () => {
  const { stream, opened, heard, isOpen } = service(
    (sent) => {
      sent.enqueue(canvasEvent("a", "1"));
      sent.enqueue(gone("a"));
    },
    (sent) => sent.enqueue(canvasEvent("b", "1")),
    (sent) => sent.enqueue(canvasEvent("a", "2")),
    (sent) => sent.enqueue(gone("a")),
  );
  for (const canvas of ["a", "a", "b"]) stream.do({ follow: canvas });
  await until(() => heard.some((message) => "revision" in message && message.canvas === "b"));
  assert.equal(heard.filter((message) => message.event === "gone").length, 1);
  assert.deepEqual(stream.present("a"), [{ event: "state", state: "live" }]);
  stream.do({ follow: "a" });
  await until(() => heard.some((message) => "revision" in message && message.revision === "2"));
  stream.do({ unfollow: "b" });
  await until(() => opened.length === 4 && !isOpen());
  assert.deepEqual(opened, [["a", "b"], ["b"], ["a", "b"], ["a"]]);
});

test("a canvas that was gone when the stream is opened again keeps no other from being followed", async () => {
  const { stream, opened, heard } = service(
    (sent) => {
      sent.enqueue(canvasEvent("b", "1"));
      sent.close();
    },
    missing,
    missing,
    (sent) => sent.enqueue(canvasEvent("b", "2")),
    missing,
    (sent) => sent.enqueue(canvasEvent("b", "3")),
  );
  for (const canvas of ["a", "b", "c", RUNS]) stream.do({ follow: canvas });
  await until(() => heard.some((message) => message.event === "state" && message.state === "interrupted"));
  stream.do({ reopen: true });
  await until(() => heard.some((message) => "revision" in message && message.revision === "3"));
  assert.deepEqual(opened, [["a", "b", "c", RUNS], ["a", "b", "c", RUNS], ["a"], ["b"], ["c"], ["b", RUNS]]);
  const { since } = heard.find((message) => "since" in message) ?? {};
  assert.deepEqual(
    heard.filter((message) => message.event !== "canvas"),
    [
      { event: "state", state: "live" },
      { event: "state", state: "interrupted", since },
      { event: "gone", canvas: "a" },
      { event: "gone", canvas: "c" },
      { event: "state", state: "live" },
    ],
  );
  for (const topic of ["b", RUNS]) stream.do({ unfollow: topic });
});

test("runs are followed beside canvases, and do not reach a listener as the state of a canvas", async () => {
  const state = { run: "job:1", kind: "video", status: "running", progress: 40, done: 0, total: 1 };
  const { stream, opened, heard } = service((sent) => sent.enqueue(bytes(`event: run\ndata: ${JSON.stringify(state)}\n\n`)));
  stream.do({ follow: RUNS });
  stream.do({ follow: "z" });
  await until(() => heard.some((message) => message.event === "run"));
  assert.deepEqual(opened, [["z", RUNS]]);
  assert.deepEqual(heard.at(-1), { event: "run", ...state });
  assert.deepEqual(stream.present(RUNS), [{ event: "state", state: "live" }]);
  stream.do({ unfollow: RUNS });
  stream.do({ unfollow: "z" });
});

test("a stream follows at most 16 canvases, the newest", async () => {
  const { stream, opened } = service((sent) => sent.enqueue(bytes(":\n\n")));
  const canvases = Array.from({ length: 17 }, (_, index) => `canvas-${String(index).padStart(2, "0")}`);
  for (const canvas of canvases) stream.do({ follow: canvas });
  await until(() => opened.length > 0);
  assert.deepEqual(opened[0], canvases.slice(1));
  for (const canvas of canvases) stream.do({ unfollow: canvas });
});
