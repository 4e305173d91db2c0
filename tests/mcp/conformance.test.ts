/** The scenarios for servers of the protocol's conformance suite, all of them, on two gateways in turns. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { env, execPath } from "node:process";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { ownGateway } from "../browser/processes.ts";
import { TOKEN } from "../browser/service.ts";
import { balancer } from "./balancer.ts";

const SUITE = join(import.meta.dirname, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const RESULTS = env["CANVAS_CONFORMANCE"] ?? "";

const APPLICABLE = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"];

/** What other scenarios ask for and how they say so. The tools, resources and prompts of this service are fixed. */
const OTHERS: { ask: string; for: string[]; say: RegExp }[] = [
  {
    ask: "tools of the suite",
    say: /there is no tool "test_|'json_schema_2020_12_tool' not found/,
    for: [
      ...["simple-text", "image", "audio", "mixed-content", "embedded-resource", "error", "with-progress", "sampling", "elicitation"].map((name) => `tools-call-${name}`),
      ...["elicitation-sep1034-defaults", "elicitation-sep1330-enums", "json-schema-2020-12"],
    ],
  },
  { ask: "resources of the suite", say: /"test:\/\//, for: ["resources-read-text", "resources-read-binary", "resources-templates-read"] },
  {
    ask: "prompts of the suite",
    say: /there is no prompt "test_/,
    for: ["prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image", "completion-complete"],
  },
  { ask: "logging", say: /-32601: logging\/setLevel/, for: ["logging-set-level", "tools-call-with-logging"] },
  // Changes are followed by subscriptions/listen, which the suite does not know.
  { ask: "subscriptions before 2026-07-28", say: /-32601: resources\/subscribe/, for: ["resources-subscribe", "resources-unsubscribe"] },
  { ask: "sessions", say: /did not provide session ID/, for: ["server-sse-polling", "server-sse-multiple-streams"] },
];

interface Check {
  status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO";
  errorMessage?: string;
  details?: { message?: string };
}

describe("conformance", () => {
  const results = new Map<string, Check[]>();

  before(async () => {
    // The suite has no credential of its own.
    const balance = await balancer(TOKEN);
    // The address that it knows is that of both.
    const environment = { CANVAS_PUBLIC_URL: balance.url };
    const gateways = await Promise.all([ownGateway(environment), ownGateway(environment)]);
    balance.to(...gateways.map(({ url }) => url));
    await rm(RESULTS, { recursive: true, force: true });
    // It exits with 1 if a scenario fails, also one that does not apply.
    await promisify(execFile)(execPath, [SUITE, "server", "--url", `${balance.url}/mcp`, "--suite", "all", "--output-dir", RESULTS]).catch(() => undefined);
    for (const directory of await readdir(RESULTS)) {
      const [, name] = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(directory) ?? [];
      assert(name, directory);
      results.set(name, JSON.parse(await readFile(join(RESULTS, directory, "checks.json"), "utf8")) as Check[]);
    }
    await Promise.all(gateways.map(({ kill }) => kill()));
    balance.close();
  });

  test("every scenario is known", () => {
    const known = [...APPLICABLE, ...OTHERS.flatMap((other) => other.for)];
    assert.deepEqual([...results.keys()].toSorted(), known.toSorted());
  });

  for (const name of APPLICABLE) {
    test(name, () => {
      const checks = results.get(name) ?? [];
      assert(checks.length > 0 && checks.every(({ status }) => status === "SUCCESS"), JSON.stringify(checks));
    });
  }

  for (const other of OTHERS) {
    test(`others ask for ${other.ask}`, () => {
      for (const name of other.for) {
        const said = (results.get(name) ?? []).flatMap(({ status, errorMessage, details }) => (status === "SUCCESS" ? ["passes"] : [errorMessage ?? details?.message ?? ""]));
        assert(said.some((text) => other.say.test(text)) && !said.includes("passes"), `${name}: ${JSON.stringify(said)}`);
      }
    });
  }
});
