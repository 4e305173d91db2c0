/** A load balancer without affinity: each message of a client goes to another gateway than the one before. */
import { createServer, request } from "node:http";

/** The header that says which client sends a message. Messages without one are of one more client. */
export const CLIENT = "x-test-client";

/** `token` is added to messages without a credential. */
export async function balancer(token?: string) {
  let gateways: URL[] = [];
  /** For each client, how many messages each gateway has answered. */
  const answered = new Map<string, number[]>();
  const open = new Set<{ name: string }>();
  const server = createServer((incoming, outgoing) => {
    const client = String(incoming.headers[CLIENT] ?? "");
    const counts = answered.get(client) ?? gateways.map(() => 0);
    answered.set(client, counts);
    const at = counts.indexOf(Math.min(...counts));
    counts[at] = (counts[at] ?? 0) + 1;
    const headers = { ...(token && { authorization: `Bearer ${token}` }), ...incoming.headers };
    const { hostname, port } = gateways[at] as URL;
    const passed = request({ hostname, port, path: incoming.url, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    const message = { name: `${client} ${incoming.method} ${incoming.url}` };
    open.add(message);
    incoming.pipe(passed);
    passed.on("error", () => outgoing.destroy());
    // Either it is answered, or its sender has gone.
    outgoing.on("close", () => {
      open.delete(message);
      passed.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  return {
    url,
    to(...urls: string[]) {
      gateways = urls.map((it) => new URL(it));
    },
    answered: (client: string) => answered.get(client) ?? [],
    /** Whether a message waits for its answer whose `<client> <method> <path>` contains this. */
    isOpen: (part: string) => [...open].some(({ name }) => name.includes(part)),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export type Balancer = Awaited<ReturnType<typeof balancer>>;
