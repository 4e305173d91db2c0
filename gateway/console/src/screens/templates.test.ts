import assert from "node:assert/strict";
import { test } from "node:test";
import { SAMPLE, TEMPLATES } from "./templates.ts";

const ALL = [SAMPLE, ...TEMPLATES];
const operationsOf = ({ operations }: (typeof ALL)[number]) => operations((image) => `asset:u:${image}`);

test("every name of a template stands for one of its nodes", () => {
  for (const template of ALL) {
    const operations = operationsOf(template);
    const nodes = operations.flatMap((one) => (one.type === "node.create" ? [one] : []));
    const names = nodes.map(({ clientId }) => clientId);
    assert.equal(new Set(names).size, names.length, template.id);
    assert(operations.length <= 200, template.id);
    for (const name of names) assert.match(name ?? "", /^[A-Za-z0-9_-]{1,180}$/);
    for (const { sectionId } of nodes) assert(sectionId === undefined || names.includes(sectionId), `${template.id}: ${sectionId}`);
    for (const one of operations) if (one.type === "connection.create") assert(names.includes(one.fromNodeId) && names.includes(one.toNodeId), template.id);
    for (const { into, from } of template.actions ?? []) assert(names.includes(into) && template.images.includes(from), template.id);
  }
  assert.equal(new Set(ALL.map(({ id }) => id)).size, ALL.length);
});

test("nodes of a template are inside of their Section, and cover nothing", () => {
  for (const template of ALL) {
    const boxes = operationsOf(template).flatMap((one) =>
      one.type === "node.create" ? [{ name: one.clientId ?? "", home: one.sectionId, x: one.node.position?.x ?? 0, y: one.node.position?.y ?? 0, width: one.node.width ?? 0, height: one.node.height ?? 0 }] : [],
    );
    for (const a of boxes) {
      const home = boxes.find(({ name }) => name === a.home);
      if (home) assert(a.x >= home.x + 40 && a.y >= home.y + 72 && a.x + a.width <= home.x + home.width - 26 && a.y + a.height <= home.y + home.height - 26, `${template.id}: ${a.name} is in ${home.name}`);
      for (const b of boxes) {
        if (a === b || a.home === b.name || b.home === a.name) continue;
        const gap = Math.max(b.x - a.x - a.width, a.x - b.x - b.width, b.y - a.y - a.height, a.y - b.y - b.height);
        assert(gap >= 24, `${template.id}: ${a.name} and ${b.name}`);
      }
    }
  }
});
