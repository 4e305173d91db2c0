import assert from "node:assert/strict";
import { mock, test, type TestContext } from "node:test";
import { contrastOf } from "./board/colors.ts";
import { Problem } from "./errors.ts";
import { bodyOf, COLORS, colorOf, Peers, PointerSender } from "./pointers.ts";

const answered = () => Promise.resolve();

/** Lets everything that waits for an answer go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
}

/** A sender in fake time, what it has sent, and answers that come at once unless they are held. */
function sending(context: TestContext) {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  context.after(() => mock.timers.reset());
  const sent: { at: number; body: string }[] = [];
  let answer: () => Promise<void> = answered;
  const sender = new PointerSender((body) => {
    sent.push({ at: Date.now(), body });
    return answer();
  });
  return {
    sender,
    sent,
    bodies: () => sent.map(({ body }) => body),
    answers: (next: () => Promise<void>) => (answer = next),
    async pass(milliseconds: number) {
      for (let passed = 0; passed < milliseconds; passed += 5) {
        mock.timers.tick(5);
        await settle();
      }
    },
  };
}

const at = (x: number) => ({ at: [x, 0] as [number, number] });

test("nothing is sent until it is turned on, and then what is shown", async (context) => {
  const { sender, bodies, pass } = sending(context);
  sender.show(at(1));
  await pass(1000);
  assert.deepEqual(bodies(), []);
  sender.turn(true);
  await pass(5);
  assert.deepEqual(bodies(), ['{"at":[1,0]}']);
});

test("nothing is sent by who has shown nothing", async (context) => {
  const { sender, bodies, pass } = sending(context);
  sender.turn(true);
  sender.show({});
  sender.announce();
  await pass(10_000);
  assert.deepEqual(bodies(), []);
});

test("a movement is sent 8 times a second, its end included", async (context) => {
  const { sender, sent, pass } = sending(context);
  sender.turn(true);
  for (let x = 0; x < 200; x += 1) {
    sender.show(at(x));
    await pass(5);
  }
  await pass(1000);
  assert(sent.length >= 8 && sent.length <= 10, String(sent.length));
  for (const [index, { at: time }] of sent.entries()) assert(index === 0 || time - (sent[index - 1]?.at ?? 0) >= 125);
  assert.equal(sent.at(-1)?.body, '{"at":[199,0]}');
});

test("what does not move is sent twice a second", async (context) => {
  const { sender, sent, pass } = sending(context);
  sender.turn(true);
  for (let number = 0; number < 200; number += 1) {
    sender.show({ ...at(0), selection: [`n${number}`] });
    await pass(5);
  }
  await pass(1000);
  assert(sent.length >= 3 && sent.length <= 4, String(sent.length));
  assert.equal(sent.at(-1)?.body, '{"at":[0,0],"selection":["n199"]}');
});

test("the same is sent again only after 5 s, when the person does something", async (context) => {
  const { sender, sent, pass } = sending(context);
  sender.turn(true);
  sender.show(at(1));
  await pass(4900);
  sender.show(at(1));
  await pass(4900);
  assert.equal(sent.length, 1);
  sender.show(at(1));
  await pass(10);
  assert.equal(sent.length, 2);
});

test("one request is in flight, and the newest state follows it", async (context) => {
  const { sender, bodies, pass, answers } = sending(context);
  const held = Promise.withResolvers<void>();
  answers(() => held.promise);
  sender.turn(true);
  for (let x = 0; x < 100; x += 1) {
    sender.show(at(x));
    await pass(10);
  }
  assert.deepEqual(bodies(), ['{"at":[0,0]}']);
  held.resolve();
  await pass(10);
  assert.deepEqual(bodies(), ['{"at":[0,0]}', '{"at":[99,0]}']);
});

test("who comes is sent what is shown already", async (context) => {
  const { sender, bodies, pass } = sending(context);
  sender.turn(true);
  sender.show(at(1));
  await pass(1000);
  sender.announce();
  await pass(1000);
  assert.deepEqual(bodies(), ['{"at":[1,0]}', '{"at":[1,0]}']);
});

test("nothing is sent after it was turned off, also not what was planned", async (context) => {
  const { sender, bodies, pass } = sending(context);
  sender.turn(true);
  sender.show(at(1));
  await pass(5);
  sender.show(at(2));
  sender.turn(false);
  sender.show(at(3));
  await pass(10_000);
  assert.deepEqual(bodies(), ['{"at":[1,0]}']);
});

test("a refusal halves the rate, and a minute without one doubles it", async (context) => {
  const { sender, sent, pass, answers } = sending(context);
  const perSecond = async () => {
    const before = sent.length;
    for (let x = 0; x < 400; x += 1) {
      sender.show(at(x));
      await pass(5);
    }
    return (sent.length - before) / 2;
  };
  sender.turn(true);
  assert.equal(Math.round(await perSecond()), 8);
  answers(() => Promise.reject(new Problem(429, "too many", undefined, 1)));
  const refused = sent.length;
  sender.show(at(-1));
  await pass(200);
  assert.equal(sent.length, refused + 1);
  answers(answered);
  // The service has said when.
  await pass(700);
  assert.equal(sent.length, refused + 1);
  await pass(400);
  assert.deepEqual(sent.at(-1)?.body, '{"at":[-1,0]}', "what was refused is sent again");
  assert.equal(Math.round(await perSecond()), 4);
  await pass(60_000);
  sender.show(at(-2));
  await pass(500);
  assert.equal(Math.round(await perSecond()), 8);
});

test("after another failure it waits for 5 s and sends what has changed since", async (context) => {
  const { sender, bodies, pass, answers } = sending(context);
  answers(() => Promise.reject(new Problem(0, "away")));
  sender.turn(true);
  sender.show(at(1));
  await pass(10_000);
  assert.equal(bodies().length, 1, "what has not changed is not sent again");
  sender.show(at(2));
  await pass(10);
  sender.show(at(3));
  await pass(4900);
  assert.equal(bodies().length, 2);
  await pass(200);
  assert.equal(bodies().at(-1), '{"at":[3,0]}');
});

test("what is sent is within the limits of the service", () => {
  assert.equal(bodyOf({ at: [1.26, -2e7], moving: [3e7, 0], view: [0, 0, 0, 2e7] }), '{"at":[1.3,-10000000],"moving":[10000000,0],"view":[0,0,0.1,10000000]}');
  assert.equal(bodyOf({ selection: [] }), "{}");
  const many = JSON.parse(bodyOf({ selection: Array.from({ length: 40 }, (_, index) => `n${index}`), editing: "a" })) as { selection: string[]; editing: string };
  assert.deepEqual([many.selection.length, many.editing], [32, "a"]);
  const long = bodyOf({ at: [1, 2], selection: Array.from({ length: 32 }, (_, index) => `${index}`.padStart(180, "n")) });
  assert(long.length <= 2048 && long.length > 1700, String(long.length));
});

test("white letters are legible on each of the eight colors, and an id has one of them for good", () => {
  assert.equal(new Set(COLORS).size, 8);
  for (const color of COLORS) assert(contrastOf(color, "#ffffff") >= 4.5, color);
  const ids = Array.from({ length: 200 }, (_, index) => `Q0eUuGm1cfr3bqvxJxh${index}`);
  assert.deepEqual(new Set(ids.map(colorOf)), new Set(COLORS));
  assert.equal(colorOf("Q0eUuGm1cfr3bqvxJxhVDw"), colorOf("Q0eUuGm1cfr3bqvxJxhVDw"));
});

test("a pointer replaces the earlier one of its id, and an entry without one ends it", () => {
  const peers = new Peers();
  const ana = { id: "a", label: "Ana", surface: "browser" };
  let changes = 0;
  const stop = peers.subscribe(() => (changes += 1));
  peers.told([{ ...ana, ...at(1) }, { ...ana, id: "b", selection: ["n"] }]);
  peers.told([{ ...ana, ...at(2) }]);
  assert.deepEqual(peers.getList().map(({ id, at: place }) => [id, place]), [["a", [2, 0]], ["b", undefined]]);
  peers.told([ana]);
  assert.deepEqual(peers.getList().map(({ id }) => id), ["b"]);
  peers.follow("b");
  peers.follow("b");
  assert.equal(peers.getFollowed(), "b");
  assert.equal(changes, 4);
  assert.equal(peers.viewOf("a"), undefined);
  stop();
  peers.told([{ ...ana, view: [0, 0, 4, 3] }, ana]);
  assert.deepEqual(peers.viewOf("a"), [0, 0, 4, 3], "who does nothing more still looks there");
  peers.forget();
  assert.deepEqual(peers.getList(), []);
  assert.equal(changes, 4);
});
