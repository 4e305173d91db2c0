import assert from "node:assert/strict";
import { test } from "node:test";
import { actorOf, sentenceOf } from "./events.ts";

const said = (event: string, details = {}) => sentenceOf({ event, details });

test("an event is told with what is known of it", () => {
  assert.equal(said("signin.ok", { by: "link" }), "Signed in with a link");
  assert.equal(said("signin.refused", {}), "A sign-in was refused");
  assert.equal(said("account.credit", { amount: -1 }), "1 credit taken away");
  assert.equal(said("account.credit", { amount: 1200 }), "1,200 credits added");
  assert.equal(said("account.quota", {}), "The storage is the default again");
  assert.equal(said("account.quota", { max: 0 }), "The storage has no limit");
  assert.equal(said("token.limits", { budgets: [] }), "Limits of a token were taken away");
  assert.equal(said("token.limits", { budgets: ["credits:day:5"] }), "Limits of a token were set");
});

test("an event of a later release has its name", () => {
  assert.equal(said("moon.landed"), "moon.landed");
  assert.equal(said("toString"), "toString");
});

test("who acted is told by what is known of them", () => {
  const ana = { id: "ana", email: "ana@example.com", displayName: "Ana" };
  assert.equal(actorOf({ via: "session", account: ana }, "ana"), "you");
  assert.equal(actorOf({ via: "session", account: ana }), "ana@example.com");
  assert.equal(actorOf({ via: "session", account: { id: "bo", displayName: "Bo" } }, "ana"), "Bo");
  assert.equal(actorOf({ via: "command", id: "account credit" }, "ana"), "whoever runs the service");
  assert.equal(actorOf({ via: "command", id: "account credit" }), "the command account credit");
  assert.equal(actorOf({ via: "system" }, "ana"), "the service");
  assert.equal(actorOf({ via: "nobody" }, "ana"), "somebody unknown");
});
