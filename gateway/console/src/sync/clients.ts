/** Clients of the model of a service, each with an engine, for tests. */
import assert from "node:assert/strict";
import { update } from "./change.ts";
import { Engine } from "./engine.ts";
import { type Graph, type Node, valueOf } from "./graph.ts";
import { MemoryStorage, Network, Service } from "./model.ts";

/** Lets everything happen that waits for nothing but promises. */
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

export class ModelClient {
  engine!: Engine;
  notices: string[] = [];
  readonly storage = new MemoryStorage();
  readonly network: Network;
  readonly name: string;
  #ids = 0;
  /** Requests of a page that was closed never come back. */
  page = 0;
  canChange = true;
  /** Whether a page listens to the notices of its engine. */
  isHeard = true;

  constructor(service: Service, name: string) {
    this.network = new Network(service);
    this.name = name;
    this.start();
  }

  start(): void {
    this.page += 1;
    this.engine = new Engine({
      transport: this.network.transport(this.name),
      storage: this.storage,
      newId: () => `${this.name}-${(this.#ids += 1)}`,
      wait: (_, signal) => this.network.wait(signal),
      canChange: this.canChange,
    });
    if (this.isHeard) this.engine.onNotice((text) => this.notices.push(text));
    void this.engine.open();
  }

  /** The page is closed, whatever it was doing, and opened again. */
  async restart(): Promise<void> {
    this.engine.close();
    this.network.pending.length = 0;
    this.start();
    await settle();
  }

  get graph(): Graph {
    const { graph } = this.engine.getSnapshot();
    assert(graph, "the canvas is open");
    return graph;
  }

  async drain(): Promise<void> {
    await settle();
    for (let turns = 0; this.network.pending.length > 0; turns += 1) {
      assert(turns < 2000, "the engine comes to rest");
      this.network.pending[0]?.answer();
      await settle();
    }
  }

  note(title: string, content = "", rest: Partial<Node["metadata"]> = {}): Node {
    const id = `${this.name}-n${(this.#ids += 1)}`;
    const metadata = { ...(content && { content }), ...rest } as Node["metadata"];
    return { id, handle: `node:${id}`, type: "sticky", title, position: { x: 0, y: 0 }, width: 100, height: 100, metadata };
  }

  create(node: Node): string {
    this.engine.perform("Create", [{ do: "create", node }]);
    return node.id;
  }

  set(id: string, fields: Record<string, unknown>): void {
    const node = this.graph.nodes.get(id);
    if (node) this.engine.perform("Change", [update("node", node, fields)]);
  }

  value(id: string, field: string): unknown {
    const node = this.graph.nodes.get(id);
    return node && valueOf(node, field);
  }

  /** What is shown, with the ids of the service. */
  seen(): unknown {
    const { real } = this.engine;
    return plain(this.graph, real);
  }
}

const sorted = (entries: (readonly [string, unknown])[]) => entries.toSorted(([a], [b]) => (a < b ? -1 : 1));

export function plain({ title, nodes, connections }: Graph, real = (id: string) => id): unknown {
  const node = ({ id, handle, metadata: { createdBy, ...metadata }, ...rest }: Node) => {
    const home = metadata.sectionId;
    return [real(id), { ...rest, metadata: { ...metadata, ...(home !== undefined && { sectionId: real(home) }) } }] as const;
  };
  return {
    title,
    nodes: sorted([...nodes.values()].map(node)),
    connections: sorted(
      [...connections.values()].map(({ id, fromNodeId, toNodeId, purpose, role }) => [real(id), { from: real(fromNodeId), to: real(toNodeId), purpose, role }]),
    ),
  };
}

export async function opened<Names extends string[]>(...names: Names): Promise<[Service, ...{ [Name in keyof Names]: ModelClient }]> {
  const service = new Service();
  const clients = names.map((name) => new ModelClient(service, name));
  for (const client of clients) await client.drain();
  return [service, ...clients] as [Service, ...{ [Name in keyof Names]: ModelClient }];
}

export async function exchange(service: Service, ...clients: ModelClient[]): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    for (const client of clients) {
      client.engine.follow(service.revision);
      await client.drain();
    }
  }
}
