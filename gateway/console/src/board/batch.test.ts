import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Problem } from "../errors.ts";
import { exchange, type ModelClient, opened, settle } from "../sync/clients.ts";
import type { Service } from "../sync/model.ts";
import { batchesOf, canRetry, cancelRest, MOST_RESULTS, progressOf, retryFailed, startBatch, undoBatch } from "./batch.ts";
import { Board } from "./board.ts";
import { batchOf } from "./making.ts";
import { GAP } from "./places.ts";
import type { Plan, Start } from "./runs.ts";

const never = () => new Promise<{ run: string }>(() => {});
const refusal = () => new Problem(422, "It cannot be read.");

/** A board with images, and plans that are answered by `answer`. */
async function studio(images: number) {
  const [service, ana] = await opened("ana");
  const ids = Array.from({ length: images }, (_, at) => ana.create({ ...ana.note(`Photo ${at}`), type: "image", asset: `asset:u:${at}` as never, position: { x: at * 200, y: 0 } }));
  await exchange(service, ana);
  const board = new Board(ana.engine, true, `canvas:u:${crypto.randomUUID()}`);
  const plan = (at: number, answer: (common: Start, targets: string[]) => Promise<{ run: string }>, count = 1): Plan => {
    const source = ana.graph.nodes.get(ids[at] ?? "") ?? assert.fail();
    return {
      outline: { title: `${source.title}, made`, width: 100, height: 128 },
      count,
      sources: [source],
      keptBy: () => ({}),
      links: (targets) => targets.map(({ id }) => ({ do: "connect", connection: { id: `${source.id} ${id}`, handle: "", fromNodeId: source.id, toNodeId: id, from: "", to: "", purpose: "flow" } })),
      start: answer,
    };
  };
  return { service, ana, ids, board, plan };
}

/** Answers everything until the batch has no start that waits. */
async function finish(service: Service, ana: ModelClient): Promise<void> {
  for (let turn = 0; turn < 40; turn += 1) {
    await exchange(service, ana);
    await settle();
  }
}

/** The service has filled a target. */
function fill(service: Service, target: string): void {
  const id = target.replace("node:", "");
  service.apply({ baseRevision: service.revision, idempotencyKey: crypto.randomUUID(), operations: [{ type: "node.update", nodeId: id, patch: { asset: "asset:u:made" } }] } as never, "worker");
}

const progress = (board: Board, id: string) => progressOf(board.graph, batchesOf(board), id) ?? assert.fail();

test("whatever is refused, the targets that are left are the results and those at work, and one undo takes all of them back", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom("made", "working", "refused"), { minLength: 1, maxLength: 12 }), async (ends) => {
      const { service, ana, board, plan } = await studio(ends.length);
      let [atOnce, most] = [0, 0];
      const before = ana.graph.nodes.size;
      const plans = ends.map((end, at) =>
        plan(at, async (_, [target = ""]) => {
          atOnce += 1;
          most = Math.max(most, atOnce);
          await settle();
          atOnce -= 1;
          if (end === "refused") throw refusal();
          if (end === "made") fill(service, target);
          return { run: `run:${at}` };
        }),
      );
      const id = startBatch(board, "Crop", plans) ?? assert.fail();
      assert.equal(ana.graph.nodes.size, before + ends.length, "all targets are there at once");
      await finish(service, ana);
      const { made, working, failed, refused, total } = progress(board, id);
      const of = (kind: string) => ends.filter((end) => end === kind).length;
      assert(most <= 4, "some at a time");
      // The model has no work: a target that was accepted and is not filled has none.
      assert.deepEqual([made.length, working.length + failed.length, refused.length, total], [of("made"), of("working"), of("refused"), ends.length]);
      assert.equal(ana.graph.nodes.size, before + of("made") + of("working"));
      assert.equal(ana.graph.connections.size, of("made") + of("working"), "each is connected to its own source");
      undoBatch(board, id);
      await finish(service, ana);
      assert.equal(service.graph.nodes.size, before);
      assert.deepEqual(ana.notices, []);
    }),
    { numRuns: 30 },
  );
});

test("results are in rows of one source each, and more than 100 are refused in words", async () => {
  const { service, ana, board, plan } = await studio(3);
  const said: string[] = [];
  board.onNotice((text) => said.push(text));
  const id = startBatch(board, "Formats", [0, 0, 1, 1, 2, 2].map((at) => plan(at, never))) ?? assert.fail();
  const { nodes } = progress(board, id);
  const [first] = nodes;
  assert.deepEqual(nodes.map(({ position: { x, y } }) => [x - (first?.position.x ?? 0), y - (first?.position.y ?? 0)]), [0, 1, 2].flatMap((row) => [0, 1].map((column) => [column * (100 + GAP), row * (128 + GAP)])));
  assert.deepEqual([...board.getUi().selection], nodes.map((node) => node.id));
  const before = ana.graph.nodes.size;
  assert.equal(startBatch(board, "Many", Array.from({ length: MOST_RESULTS + 1 }, () => plan(0, never))), undefined);
  assert.deepEqual([ana.graph.nodes.size, said.at(-1)], [before, "At most 100 images at a time."]);
  await finish(service, ana);
  assert.equal(batchOf(service.graph.nodes.get(ana.engine.real(first?.id ?? "")) ?? assert.fail())?.id, id, "the canvas says what belongs to a batch");
});

test("what has failed is tried again alone, and what is left is canceled with its targets", async () => {
  const { service, ana, board, plan } = await studio(3);
  let isRefused = true;
  const started: number[] = [];
  const plans = [0, 1, 2].map((at) =>
    plan(at, async (_, [target = ""]) => {
      started.push(at);
      if (at === 1 && isRefused) throw refusal();
      if (at === 2) return new Promise(() => {});
      fill(service, target);
      return { run: `run:${at}` };
    }),
  );
  const id = startBatch(board, "Crop", plans) ?? assert.fail();
  await finish(service, ana);
  const first = progress(board, id);
  assert.deepEqual([first.made.length, first.working.length, first.refused.length, first.total], [1, 1, 1, 3]);
  assert.equal((first.refused[0]?.error as Problem | undefined)?.message, "It cannot be read.");
  isRefused = false;
  started.length = 0;
  assert(canRetry(board, first, id));
  retryFailed(board, id);
  await finish(service, ana);
  assert.deepEqual(started, [1]);
  assert.deepEqual([progress(board, id).made.length, progress(board, id).refused.length], [2, 0]);
  cancelRest(board, id);
  await finish(service, ana);
  const { made, working, total } = progress(board, id);
  assert.deepEqual([made.length, working.length, total], [2, 0, 2]);
  board.undo();
  await finish(service, ana);
  assert.equal(progress(board, id).total, 1, "the second attempt is a step of its own");
  board.redo();
  await finish(service, ana);
  assert.equal(progress(board, id).made.length, 2, "and a redo brings its result back");
});

test("after a reload, a batch is read from the canvas", async () => {
  const { service, ana, board, plan } = await studio(2);
  const id = startBatch(board, "Crop", [0, 1].map((at) => plan(at, async (_, [target = ""]) => (at === 0 && fill(service, target), { run: "run:1" })))) ?? assert.fail();
  await finish(service, ana);
  await ana.restart();
  await finish(service, ana);
  const after = new Board(ana.engine, true, board.canvas);
  const { label, made, failed, total } = progress(after, id);
  assert.deepEqual([label, made.length, failed.length, total], ["Crop", 1, 1, 2]);
  undoBatch(after, id);
  await finish(service, ana);
  assert.equal(service.graph.nodes.size, 2);
});
