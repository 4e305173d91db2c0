/** What a model reads before its work: the list of tools, the digest and the skills, in tokens of o200k_base. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { describe, test } from "node:test";

import { encode } from "gpt-tokenizer/encoding/o200k_base";

import { BASE_URL, TOKEN } from "../browser/service.ts";
import { KINDS, type Kind, STATELESS } from "./hosts.ts";

const LIST_MAX = 6000;
const DIGEST_PART_MAX = 6000;
const SKILL_MAX = 600;
/** Over /mcp and of `canvas mcp`, whose lists differ in how files are named. */
const NEWEST = KINDS.filter(({ version }) => version === STATELESS) as [Kind, Kind];

function fits(what: string, text: string, most: number): void {
  const tokens = encode(text).length;
  assert(tokens > 0 && tokens <= most, `${what}: ${tokens} tokens, more than ${most}`);
  console.log(`${what}: ${tokens} of ${most} tokens`);
}

describe("tokens", () => {
  for (const kind of NEWEST) {
    test(`the list of tools, ${kind.name}`, async () => {
      const host = await kind.connect(BASE_URL, TOKEN, tmpdir());
      fits("the list of tools", JSON.stringify(await host.tools()), LIST_MAX);
      await host.close();
    });
  }

  test("the skills", async () => {
    const host = await NEWEST[0].connect(BASE_URL, TOKEN, tmpdir());
    for (const { name } of await host.prompts()) {
      const [contents] = await host.read(`skill://canvas/${name}/SKILL.md`);
      fits(`the skill ${name}`, contents?.text ?? "", SKILL_MAX);
    }
    await host.close();
  });

  for (const query of ["", "?part=rest"]) {
    test(`the digest${query}`, async () => {
      const answer = await fetch(`${BASE_URL}/api/canvas-agent/v1/digest.md${query}`);
      assert.equal(answer.status, 200);
      fits(`the digest${query}`, await answer.text(), DIGEST_PART_MAX);
    });
  }
});
