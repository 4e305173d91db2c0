import { ConnectionError } from "./errors.js";

/** The service sends a comment after 15 s without an event: after this time, the connection is lost. */
const SILENCE_MS = 45_000;

/** An event: its name, and its data as text. */
export interface ServerEvent {
  event: string;
  data: string;
}

/**
 * The events of a stream (server-sent events of the HTML standard). Ends with the stream; fails with `ConnectionError` when it breaks off
 * or falls silent.
 */
export async function* readEvents({ body, headers }: Response): AsyncGenerator<ServerEvent> {
  const reader = body?.getReader();
  if (!reader) return;
  const requestId = headers.get("x-request-id") ?? "";
  const decoder = new TextDecoder();
  let rest = "";
  let event = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await orSilence(reader.read(), requestId);
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const raw of lines) {
        const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
        if (line === "") {
          if (data.length > 0) yield { event, data: data.join("\n") };
          event = "";
          data = [];
        } else if (line.startsWith("event:")) {
          event = line.slice(6).trimStart();
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
        }
      }
    }
  } finally {
    // Also when the consumer stops: the connection is closed.
    await reader.cancel().catch(() => undefined);
  }
}

async function orSilence<T>(read: Promise<T>, requestId: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it fell silent")), SILENCE_MS);
  });
  try {
    return await Promise.race([read, silence]);
  } catch (error) {
    throw new ConnectionError(`the stream broke off: ${String(error)}`, requestId, error);
  } finally {
    clearTimeout(timer);
  }
}
