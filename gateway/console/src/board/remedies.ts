/** What is done about findings on the board. */
import { api, type Finding } from "../api.ts";
import type { Remedies } from "../screens/review.tsx";
import { nameOf, operationsOf } from "../sync/change.ts";
import type { Board } from "./board.ts";
import { moved } from "./gestures.ts";
import { layOut } from "./layout.ts";
import { draftOf } from "./making.ts";
import { placesAround } from "./places.ts";
import { makeAgain } from "./prompting.ts";

/** Places that are tried before it is said that none is free. */
const MOST_TRIES = 8;

export function remediesOf(board: Board, canvas: string): Remedies {
  const { engine } = board;
  const nodesOf = (handles: string[]) => handles.flatMap((handle) => board.graph.nodes.get(engine.local(handle.replace(/^node:/, ""))) ?? []);

  /** Moves one of two nodes that cover each other to the nearest place where the service finds no overlap. */
  async function makeRoom({ nodeHandles }: Finding): Promise<void> {
    const nodes = nodesOf(nodeHandles);
    const node = nodes.findLast(({ metadata }) => metadata.createdBy === "agent") ?? nodes.at(-1);
    if (!node) return;
    let tries = 0;
    for (const place of placesAround(board.graph, node)) {
      const changes = moved(board.graph, [node.id], { x: place.x - node.position.x, y: place.y - node.position.y });
      const { validation } = await api.dryRun(canvas, changes.flatMap((change) => operationsOf(change, engine.real)));
      const handle = `node:${engine.real(node.id)}`;
      if (!validation.findings.some(({ code, nodeHandles }) => code.endsWith("_overlap") && nodeHandles.includes(handle))) {
        engine.perform("Make room", changes);
        board.select([node.id]);
        return;
      }
      tries += 1;
      if (tries === MOST_TRIES) break;
    }
    board.notify("There is no free place near it. Move it by hand.");
  }

  return {
    title: (handle) => {
      const [node] = nodesOf([handle]);
      return node ? nameOf(node) : "Something deleted";
    },

    ref: (handle) => nodesOf([handle])[0]?.ref,

    show(handles) {
      const ids = nodesOf(handles).map(({ id }) => id);
      board.select(ids);
      board.surface?.show(ids);
    },

    remedyOf(finding) {
      if (!board.canChange) return undefined;
      const { code, nodeHandles } = finding;
      if (code === "agent_overlap" || code === "user_overlap") return { label: "Make room", run: () => makeRoom(finding) };
      const [node, other] = nodesOf(nodeHandles);
      if (!node || other) return undefined;
      if (code === "text_truncated") return { label: "Grow", run: () => layOut(board, "Fit to the text", (_, real) => [{ type: "node.fit", nodeId: real(node.id) }]) };
      const draft = code === "stand_in_output" && board.scopes.includes("image:generate") ? draftOf(board.graph, node) : undefined;
      if (!draft) return undefined;
      return {
        label: "Make again…",
        run: () => {
          board.select([node.id]);
          makeAgain(board, draft);
        },
      };
    },
  };
}
