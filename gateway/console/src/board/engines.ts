/** The engines of this page: one for each canvas. An engine whose screen was left goes on until everything is sent. */
import { useEffect } from "react";
import { transportOf } from "../api.ts";
import { sessionEnd } from "../session-end.ts";
import { Engine } from "../sync/engine.ts";
import { browserStorage } from "../sync/storage.ts";
import type { Canvas, Transport } from "../sync/types.ts";

interface Entry {
  engine: Engine;
  users: number;
  end: () => void;
}

const entries = new Map<string, Entry>();

function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

const newId = () => crypto.randomUUID();

/** Begins to read the canvas before it is asked for. Once something was sent, that answer is no longer the newest. */
function readingAhead(transport: Transport): Transport {
  let ahead: Promise<Canvas> | undefined = transport.read();
  ahead.catch(() => {});
  const taken = () => {
    const answer = ahead;
    ahead = undefined;
    return answer;
  };
  return {
    ...transport,
    read: () => taken() ?? transport.read(),
    apply: (request) => {
      ahead = undefined;
      return transport.apply(request);
    },
  };
}

function entryOf(account: string, canvas: string, canChange: boolean): Entry {
  const key = `${account} ${canvas}`;
  const known = entries.get(key);
  if (known) return known;
  const engine = new Engine({ transport: readingAhead(transportOf(canvas)), storage: browserStorage(account, canvas), newId, wait, canChange });
  const end = () => {
    sessionEnd.delete(end);
    if (entries.get(key) === entry) entries.delete(key);
    engine.close();
  };
  const entry: Entry = { engine, users: 0, end };
  entries.set(key, entry);
  sessionEnd.add(end);
  engine.subscribe(() => endIfDone(entry));
  void engine.open();
  return entry;
}

function endIfDone({ engine, users, end }: Entry): void {
  const { state } = engine.getSnapshot();
  if (users === 0 && state !== "opening" && state !== "saving" && state !== "waiting") end();
}

/** Keeps the engine of a canvas, and begins to read the canvas, until the returned function is called. `canChange`: as far as it is known. */
export const hold = (account: string, canvas: string, canChange: boolean): (() => void) => use(entryOf(account, canvas, canChange));

/** Keeps an engine, also when its screen is left, until the returned function is called. */
export function keep(engine: Engine): () => void {
  const entry = [...entries.values()].find((one) => one.engine === engine);
  return entry ? use(entry) : () => {};
}

function use(entry: Entry): () => void {
  entry.users += 1;
  return () => {
    entry.users -= 1;
    // The next screen may want the same canvas.
    setTimeout(() => endIfDone(entry));
  };
}

/** Does something with the engine of a canvas, also when no screen shows it. */
export async function withEngine(account: string, canvas: string, task: (engine: Engine) => Promise<void>): Promise<void> {
  const release = hold(account, canvas, true);
  try {
    await task(entryOf(account, canvas, true).engine);
  } finally {
    release();
  }
}

/** The engine of a canvas while the component is shown. */
export function useEngine(account: string, canvas: string, canChange: boolean): Engine {
  const { engine } = entryOf(account, canvas, canChange);
  useEffect(() => hold(account, canvas, canChange), [account, canvas, canChange]);
  useEffect(() => engine.permit(canChange), [engine, canChange]);
  return engine;
}
