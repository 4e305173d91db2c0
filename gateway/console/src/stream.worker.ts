/** The shared worker that holds the event stream of all tabs of an account. */
import { openEvents } from "./events.ts";
import { type Command, type Message, Stream, topicOf } from "./stream.ts";

/** The first message of a tab. The tab holds this lock as long as it lives. */
export interface Hello {
  lock: string;
}

const tabs = new Map<MessagePort, string[]>();

/** The name of this worker. */
const { name: account } = globalThis as unknown as { name: string };

const stream = new Stream((...what) => openEvents(account, ...what), (message) => {
  const topic = topicOf(message);
  for (const [port, followed] of tabs) {
    if (topic !== undefined && !followed.includes(topic)) continue;
    port.postMessage(message);
    // The stream has dropped it. A tab for which it is there again follows it anew.
    if (message.event === "gone") tabs.set(port, followed.filter((one) => one !== topic));
  }
});

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (!port) return;
  tabs.set(port, []);
  port.addEventListener("message", ({ data }: MessageEvent<Command | Hello>) => {
    // The lock is granted here when the tab is closed, also when it crashed.
    if ("lock" in data) void navigator.locks.request(data.lock, () => leave(port));
    else obey(port, data);
  });
  port.start();
});

function obey(port: MessagePort, command: Command): void {
  const followed = tabs.get(port);
  if (!followed) return;
  if ("follow" in command) {
    followed.push(command.follow);
    for (const message of stream.present(command.follow)) port.postMessage(message satisfies Message);
  } else if ("unfollow" in command) {
    const at = followed.indexOf(command.unfollow);
    if (at < 0) return;
    followed.splice(at, 1);
  }
  stream.do(command);
}

function leave(port: MessagePort): void {
  for (const topic of tabs.get(port) ?? []) stream.do({ unfollow: topic });
  tabs.delete(port);
}
