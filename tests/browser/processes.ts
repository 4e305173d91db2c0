/** Processes that a case starts for itself, so that it can kill them. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";

import { GATEWAY, processEnvironment } from "./service.ts";

interface Process {
  url: string;
  start: () => Promise<void>;
  kill: () => Promise<void>;
}

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });

/** A process that runs until it is killed, and that is ready when `isReady` says so. */
async function started(url: string, run: () => ChildProcess, isReady: () => Promise<boolean>): Promise<Process> {
  let child: ChildProcess | undefined;
  const kill = async () => {
    const ended = child && child.exitCode === null && child.signalCode === null ? new Promise((resolve) => child?.once("exit", resolve)) : undefined;
    child?.kill("SIGKILL");
    await ended;
  };
  const start = async () => {
    child = run();
    for (const begin = Date.now(); !(await isReady()); ) {
      assert(Date.now() - begin < 20_000, `${url} is ready`);
      await new Promise((resume) => setTimeout(resume, 100));
    }
  };
  await start().catch(async (error: unknown) => {
    await kill();
    throw error;
  });
  return { url, start, kill };
}

/** A gateway of a case's own, on the service's stores. */
export async function ownGateway(environment: Record<string, string> = {}): Promise<Process & { requests: (route: string) => Promise<number> }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const admin = `http://127.0.0.1:${adminPort}`;
  const own = { CANVAS_LISTEN: `127.0.0.1:${port}`, CANVAS_ADMIN_LISTEN: `127.0.0.1:${adminPort}`, CANVAS_PUBLIC_URL: url, ...environment };
  const gateway = await started(
    url,
    () => spawn(GATEWAY, ["serve"], { env: { ...processEnvironment(), ...own }, stdio: "ignore" }),
    async () => (await fetch(`${admin}/readyz`).catch(() => undefined))?.ok === true,
  );
  return {
    ...gateway,
    /** How many requests it has answered on a route whose path ends so. */
    async requests(route) {
      const lines = (await (await fetch(`${admin}/metrics`)).text()).split("\n");
      const counted = lines.filter((line) => line.startsWith("http_requests_total{") && line.includes(`${route}"`));
      return counted.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    },
  };
}

/** A Redis of a case's own, which forgets everything when it is killed. */
export async function ownRedis(): Promise<Process> {
  const port = await freePort();
  const answers = () =>
    new Promise<boolean>((resolve) => {
      const probe = spawn("redis-cli", ["-p", String(port), "ping"], { stdio: "ignore" });
      probe.once("error", () => resolve(false));
      probe.once("exit", (code) => resolve(code === 0));
    });
  return started(`redis://127.0.0.1:${port}/0`, () => spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], { stdio: "ignore" }), answers);
}

/** The OpenID provider of `deploy/local/up --sign-in`, for a service at `origin`. */
export async function ownProvider(port: number, origin: string): Promise<Process & { says: (person: string, claims: object) => Promise<void> }> {
  const root = join(import.meta.dirname, "../..");
  const url = `http://localhost:${port}`;
  const provider = await started(
    url,
    () => spawn(process.execPath, [join(root, "deploy/local/oidc/provider.mjs"), join(root, ".local/oidc"), String(port), origin], { stdio: "ignore" }),
    async () => (await fetch(`${url}/.well-known/openid-configuration`).catch(() => undefined))?.ok === true,
  );
  return {
    ...provider,
    /** Changes what it says about a person, or adds one. */
    async says(person, claims) {
      assert((await fetch(`${url}/people/${person}`, { method: "PUT", body: JSON.stringify(claims) })).ok);
    },
  };
}
