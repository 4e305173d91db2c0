/**
 * What a page knows of a canvas while it is open: its revision, who else has it open, and the state of the event stream. And what happens
 * to the runs of the account.
 */
import { useEffect, useEffectEvent, useState } from "react";
import { served } from "./api.ts";
import { openEvents } from "./events.ts";
import { reached } from "./reached.ts";
import { type AccessRole, type Command, type Message, type Presence, RUNS, type RunState, Stream, topicOf } from "./stream.ts";
import type { Hello } from "./stream.worker.ts";
import workerUrl from "./stream.worker.ts?sharedworker&url";

export interface Live {
  state: "connecting" | "live" | "interrupted";
  /** When the stream was interrupted. */
  since?: number | undefined;
  revision?: string;
  who: Presence[];
  /** What the person may do on the canvas now, where the service says so. */
  role?: AccessRole;
}

/** Sends a command to the stream that all pages share, or to this page's own. */
type Post = (command: Command) => void;

const listeners = new Set<(message: Message) => void>();
let isInterrupted = false;

function hear(message: Message): void {
  listeners.forEach((listener) => listener(message));
  if (message.event !== "state") return;
  if (isInterrupted && message.state === "live") reached();
  isInterrupted = message.state === "interrupted";
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

/** The one script URL that this application uses. The content security policy permits no other. */
function trustedWorkerUrl(): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy("worker", {
    createScriptURL(url) {
      if (url !== workerUrl) throw new TypeError("not the worker's URL");
      return url;
    },
  });
  return policy ? policy.createScriptURL(workerUrl) : workerUrl;
}

function sharedStream(account: string): Post {
  // A worker for each account, so that no tab learns of another account.
  const { port } = new SharedWorker(trustedWorkerUrl(), { type: "module", name: account });
  port.addEventListener("message", ({ data }: MessageEvent<Message>) => hear(data));
  port.start();
  const lock = `canvas-tab-${crypto.randomUUID()}`;
  // Held until this page ends. The worker asks for the same lock afterwards.
  void navigator.locks.request(lock, () => {
    port.postMessage({ lock } satisfies Hello);
    return new Promise<never>(() => {});
  });
  return (command) => port.postMessage(command);
}

function ownStream(account: string): Post {
  const stream = new Stream((...what) => openEvents(account, ...what), hear);
  return (command) => {
    if ("follow" in command) stream.present(command.follow).forEach(hear);
    stream.do(command);
  };
}

let connected: Post | undefined;

/** Connects once, with the first canvas that is opened. */
function connect(): Post {
  if (!connected) {
    const post = (typeof SharedWorker === "function" && "locks" in navigator ? sharedStream : ownStream)(served ?? "");
    for (const change of ["online", "offline"]) addEventListener(change, () => post({ reopen: true }));
    connected = post;
  }
  return connected;
}

const CONNECTING: Live = { state: "connecting", who: [] };

/**
 * Follows a canvas while the component is shown. Nothing is followed without a handle. When the canvas is reported as gone, or the stream
 * as refused, `reread` is called. It resolves to whether the canvas is there: then it is followed anew, for it may be shared again.
 */
export function useLive(canvas: string | undefined, reread: () => Promise<boolean>): Live {
  const [live, setLive] = useState(CONNECTING);
  const check = useEffectEvent(reread);
  useEffect(() => {
    if (canvas === undefined) return;
    let isLeft = false;
    let stop = () => {};
    const begin = () => {
      stop = follow(canvas, (message) => {
        setLive((live) => next(live, message));
        if (message.event === "refused") void check();
        if (message.event === "gone") void again();
      });
    };
    const again = async () => {
      stop();
      if ((await check()) && !isLeft) begin();
    };
    begin();
    return () => {
      isLeft = true;
      stop();
      setLive(CONNECTING);
    };
  }, [canvas]);
  return live;
}

/** Calls `listener` with the messages about a topic, and those about the stream, until the returned function is called. */
function follow(topic: string, listener: (message: Message) => void): () => void {
  const post = connect();
  const stop = listenTo(topic, listener);
  post({ follow: topic });
  return () => {
    stop();
    post({ unfollow: topic });
  };
}

/** The same for a topic that the page follows already. */
export function listenTo(topic: string, listener: (message: Message) => void): () => void {
  const listening = (message: Message) => {
    if ((topicOf(message) ?? topic) === topic) listener(message);
  };
  listeners.add(listening);
  return () => void listeners.delete(listening);
}

/**
 * Follows the runs of the account while the component is shown, if `isAllowed`: without the scope, the service would refuse the stream.
 * `heard` is called with each state of a run, and without one when some may have been missed.
 */
export function useRunEvents(isAllowed: boolean, heard: (state?: RunState) => void): void {
  const hear = useEffectEvent(heard);
  useEffect(() => {
    if (!isAllowed) return;
    return follow(RUNS, (message) => {
      if (message.event === "run") hear(message);
      else if (message.event === "state" && message.state === "live") hear();
    });
  }, [isAllowed]);
}

function next(live: Live, message: Message): Live {
  switch (message.event) {
    case "canvas":
      return { ...live, revision: message.revision };
    case "presence":
      return { ...live, who: message.who };
    case "role":
      return { ...live, role: message.accessRole };
    case "state":
      return { ...live, state: message.state, since: "since" in message ? message.since : undefined };
    case "gone":
    case "refused":
    case "pointers":
    case "run":
      return live;
  }
}
