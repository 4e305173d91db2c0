/**
 * One event stream for any number of canvases, the runs of the account, and listeners. It runs in the shared worker of all tabs of the
 * account, because a browser keeps at most six connections to a service over HTTP/1.1; where there are no shared workers, it runs in the
 * page.
 *
 * The service sends the present state of each canvas first, so an interrupted stream loses nothing of them: it is opened again. Of runs it
 * sends those under way, so a listener reads the list again after an interruption.
 */
import type { CanvasSummary } from "./api.ts";
import { problemOf } from "./errors.ts";

export interface Presence {
  /** The same for one session on one canvas, and for nothing else. */
  id: string;
  label: string;
  surface: string;
}

/** What a person does on a canvas, in units of the plane. */
export interface PointerState {
  at?: [x: number, y: number];
  selection?: string[];
  /** How far the selection is being dragged. */
  moving?: [x: number, y: number];
  view?: [x: number, y: number, width: number, height: number];
  /** The node whose text is being written. */
  editing?: string;
}

/** A pointer of somebody else. Without any state, it is shown no more. */
export type Pointer = Presence & PointerState;

export type AccessRole = NonNullable<CanvasSummary["accessRole"]>;

/** The events that say how a canvas is now: a new listener hears the latest of each. */
const PRESENT = ["canvas", "presence", "role"] as const;

/** What is followed in place of a canvas for the runs of the account. The handles of canvases begin with `canvas:`. */
export const RUNS = "runs";

/** The state of a run, or of a video's job. */
export interface RunState {
  run: string;
  kind: string;
  status: string;
  /** In percent. */
  progress: number;
  done: number;
  total: number;
}

export type Message =
  | { event: "canvas"; canvas: string; revision: string }
  | { event: "presence"; canvas: string; who: Presence[] }
  /** Those that have changed. */
  | { event: "pointers"; canvas: string; who: Pointer[] }
  /** What the person may do on the canvas now. */
  | { event: "role"; canvas: string; accessRole: AccessRole }
  /** The canvas was deleted, or is no longer shared. It is not followed any more, until it is followed anew. */
  | { event: "gone"; canvas: string }
  | ({ event: "run" } & RunState)
  /** The stream's state. `since`: when it was interrupted, in milliseconds. */
  | { event: "state"; state: "connecting" | "live" }
  | { event: "state"; state: "interrupted"; since: number }
  /** The service refused the stream with this status, for all that is followed: a page has to read its canvas again. */
  | { event: "refused"; status: number };

/** What a message is about, as it is followed. One about the stream itself is for every listener. */
export const topicOf = (message: Message): string | undefined =>
  message.event === "run" ? RUNS : message.event === "state" || message.event === "refused" ? undefined : message.canvas;

/** `follow` and `unfollow`: a canvas, or `RUNS`. `reopen`: the network has changed, so the present connection may be dead, or a new one possible at once. */
export type Command = { follow: string } | { unfollow: string } | { reopen: true };

/** The service's limit on canvases in a stream. */
const MOST = 16;
/** The service sends a comment every 15 s. After this long without a byte, the connection is dead. */
const SILENCE = 40_000;

export class Stream {
  #open: (topics: string[], signal: AbortSignal) => Promise<Response>;
  #emit: (message: Message) => void;
  #followers = new Map<string, number>();
  #latest = new Map<string, Message>();
  #state: Message = { event: "state", state: "connecting" };
  #attempt: AbortController | undefined;
  #failures = 0;

  constructor(open: (topics: string[], signal: AbortSignal) => Promise<Response>, emit: (message: Message) => void) {
    this.#open = open;
    this.#emit = emit;
  }

  do(command: Command): void {
    if ("follow" in command) this.#follow(command.follow);
    else if ("unfollow" in command) this.#unfollow(command.unfollow);
    else this.#restart();
  }

  /** What a new listener of `topic` has missed. */
  present(topic: string): Message[] {
    const known = PRESENT.map((event) => this.#latest.get(`${event} ${topic}`));
    return [this.#state, ...known.filter((message) => message !== undefined)];
  }

  #follow(topic: string): void {
    const count = this.#followers.get(topic) ?? 0;
    // The newest is last: beyond the limit, the stream follows the newest.
    this.#followers.delete(topic);
    this.#followers.set(topic, count + 1);
    if (count === 0) this.#restart();
  }

  #unfollow(topic: string): void {
    const count = this.#followers.get(topic) ?? 0;
    if (count > 1) {
      this.#followers.set(topic, count - 1);
    } else if (count === 1) {
      this.#drop(topic);
    }
  }

  #drop(topic: string): void {
    this.#followers.delete(topic);
    for (const event of PRESENT) this.#latest.delete(`${event} ${topic}`);
    this.#restart();
  }

  /** A canvas is gone. The service sends nothing more of it, and refuses a stream that contains it. */
  #gone(canvas: string): void {
    this.#drop(canvas);
    this.#emit({ event: "gone", canvas });
  }

  /** What to follow: the newest canvases, and the runs. */
  get #topics(): string[] {
    const canvases = [...this.#followers.keys()].filter((topic) => topic !== RUNS);
    return [...canvases.slice(-MOST).toSorted(), ...(this.#followers.has(RUNS) ? [RUNS] : [])];
  }

  /** Opens the stream for what is followed now. */
  #restart(): void {
    this.#attempt?.abort();
    this.#failures = 0;
    if (this.#followers.size === 0) {
      this.#state = { event: "state", state: "connecting" };
    } else {
      this.#attempt = new AbortController();
      void this.#run(this.#attempt.signal);
    }
  }

  async #run(stopped: AbortSignal): Promise<void> {
    // Canvases that are followed or left in the same moment share a connection.
    await pause(20, stopped);
    while (!stopped.aborted) {
      const connection = new AbortController();
      const signal = AbortSignal.any([stopped, connection.signal]);
      let after: number | undefined;
      try {
        const response = await this.#open(this.#topics, signal);
        if (!response.ok) {
          const problem = await problemOf(response);
          after = problem.retryAfter;
          if (problem.status === 404) await this.#findGone(signal);
          else if (!problem.isTemporary) this.#emit({ event: "refused", status: problem.status });
        } else if (response.body) {
          await this.#read(response.body, connection);
        }
      } catch {
        // The connection broke. It is opened again below.
      }
      if (stopped.aborted) return;
      if (this.#state.event !== "state" || this.#state.state !== "interrupted") {
        this.#setState({ event: "state", state: "interrupted", since: Date.now() });
      }
      await pause(after === undefined ? backoff(this.#failures) : after * 1000, stopped);
      this.#failures += 1;
    }
  }

  /** The service does not say which of the canvases is gone, so each is asked for by itself. */
  async #findGone(signal: AbortSignal): Promise<void> {
    const gone: string[] = [];
    for (const canvas of this.#topics.filter((topic) => topic !== RUNS)) {
      const asked = new AbortController();
      const { status } = await this.#open([canvas], AbortSignal.any([signal, asked.signal]));
      asked.abort();
      if (status === 404) gone.push(canvas);
    }
    for (const canvas of gone) this.#gone(canvas);
  }

  async #read(body: ReadableStream<Uint8Array<ArrayBuffer>>, connection: AbortController): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = parser((message) => {
      if (message.event === "gone") return this.#gone(message.canvas);
      if (message.event === "canvas" || message.event === "presence" || message.event === "role") this.#latest.set(`${message.event} ${message.canvas}`, message);
      this.#emit(message);
    });
    for (;;) {
      const watchdog = setTimeout(() => connection.abort(), SILENCE);
      const { done, value } = await reader.read().finally(() => clearTimeout(watchdog));
      if (done || connection.signal.aborted) return;
      this.#failures = 0;
      if (this.#state.event !== "state" || this.#state.state !== "live") this.#setState({ event: "state", state: "live" });
      parse(value);
    }
  }

  #setState(state: Message): void {
    this.#state = state;
    this.#emit(state);
  }
}

/** Waits, or until `stopped`. */
function pause(milliseconds: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resume) => {
    const timer = setTimeout(resume, milliseconds);
    stopped.addEventListener("abort", () => {
      clearTimeout(timer);
      resume();
    });
  });
}

/** 0.5 s to 30 s, with jitter, so that the clients of a restarted service do not return all at once. */
export function backoff(failures: number, random = Math.random()): number {
  return Math.min(30_000, 500 * 2 ** failures) * (0.5 + random / 2);
}

/** A parser of server-sent events, which takes the text of a stream in pieces. */
export function parser(emit: (message: Message) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).replaceAll("\r", "").split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = block.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line));
      const event = fields.find((field) => field?.[1] === "event")?.[2];
      const data = fields.filter((field) => field?.[1] === "data").map((field) => field?.[2]);
      if (data.length > 0 && (event === "canvas" || event === "presence" || event === "pointers" || event === "role" || event === "gone" || event === "run")) {
        emit({ event, ...JSON.parse(data.join("\n")) } as Message);
      }
    }
  };
}
