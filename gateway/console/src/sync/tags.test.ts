import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { exchange, opened } from "./clients.ts";
import { update } from "./change.ts";
import type { Node } from "./graph.ts";
import { mergedTags, MOST_TAGS, withTag } from "./tags.ts";

test("what two people change of the tags of a node is merged, and of a kind of which there is one, the later is there", () => {
  assert.deepEqual(mergedTags(["a"], ["a", "favorite"], ["a", "b"]), ["a", "b", "favorite"]);
  assert.deepEqual(mergedTags(["a", "b"], ["b"], ["a", "b", "c"]), ["b", "c"]);
  assert.deepEqual(mergedTags(["rating:1"], ["rating:5"], ["rating:3", "label:red"]), ["label:red", "rating:5"]);
  assert.deepEqual(mergedTags(null, ["label:blue"], null), ["label:blue"]);
  assert.equal(mergedTags(["a"], null, ["a"]), null);
  assert.deepEqual(withTag(["favorite", "rating:2"], "rating:4"), ["favorite", "rating:4"]);
});

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`);

test("a node has at most 24 tags: what is there comes first", () => {
  assert.equal(mergedTags(null, ["x"], numbered(MOST_TAGS - 1))?.length, MOST_TAGS);
  assert.deepEqual(mergedTags(null, ["x"], numbered(MOST_TAGS)), numbered(MOST_TAGS));
  assert.deepEqual(mergedTags(null, ["rating:5"], [...numbered(MOST_TAGS - 1), "rating:1"])?.at(-1), "rating:5");
});

const tag: fc.Arbitrary<string> = fc.constantFrom("favorite", "rating:1", "rating:5", "label:red", "label:blue", "mood");
const tags = fc.uniqueArray(tag, { selector: (one) => one.split(":")[0] });

test("two people mark an image at once, in any order: both marks are there, and both see the same", async () => {
  await fc.assert(
    fc.asyncProperty(tags, tags, tags, fc.boolean(), async (before, ofAna, ofBen, isBenFirst) => {
      const [service, ana, ben] = await opened("ana", "ben");
      const local = ana.create({ ...ana.note("Photo"), metadata: { content: "x", ...(before.length > 0 && { tags: before }) } });
      await exchange(service, ana, ben);
      const id = ana.engine.real(local);
      const mark = (client: typeof ana, of: string, next: string[]) => client.engine.perform("Mark", [update("node", client.graph.nodes.get(of) as Node, { "metadata.tags": next.length > 0 ? next : null })]);
      mark(ana, local, ofAna);
      mark(ben, id, ofBen);
      await exchange(service, ...(isBenFirst ? [ben, ana] : [ana, ben]));
      await exchange(service, ana, ben);
      const of = (client: typeof ana, node: string) => (client.graph.nodes.get(node)?.metadata.tags ?? []) as string[];
      const [left, right] = [of(ana, local), of(ben, id)];
      assert.deepEqual(left.toSorted(), right.toSorted());
      const [first, second] = isBenFirst ? [ofBen, ofAna] : [ofAna, ofBen];
      const isNew = (one: string) => !before.includes(one);
      for (const one of second.filter(isNew)) assert.ok(left.includes(one), `${one} of the second`);
      const excluded = new Set(second.filter(isNew).map((one) => one.split(":")[0]));
      for (const one of first.filter(isNew)) if (!excluded.has(one.split(":")[0])) assert.ok(left.includes(one), `${one} of the first`);
      for (const kind of ["rating:", "label:"]) assert.ok(left.filter((one) => one.startsWith(kind)).length <= 1, kind);
    }),
    { numRuns: 300 },
  );
});
