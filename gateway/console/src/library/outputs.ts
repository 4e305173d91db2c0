/** The alternative texts of what work has made. */
import { useQueries } from "@tanstack/react-query";
import { altOf } from "../alt.ts";
import { api } from "../api.ts";
import { useSession } from "../session.ts";
import type { Node } from "../sync/graph.ts";

/** An output and the node that received it. */
export interface Made {
  node: string | undefined;
  /** Whether the node still shows it. */
  isShownBy: (node: Node) => boolean;
  /** What is said of it otherwise. */
  alt: string;
}

/** The alternative text of each output: that of its node as it is now, for as long as it shows the output. */
export function useAltsOf(canvas: string | undefined, outputs: readonly Made[]): string[] {
  const mayRead = useSession().session.scopes.includes("canvas:read");
  const nodes = useQueries({
    queries: outputs.map(({ node }) => ({
      queryKey: ["node", canvas, node],
      queryFn: ({ signal }: { signal: AbortSignal }) => api.node(canvas as string, node as string, signal),
      enabled: mayRead && canvas !== undefined && node !== undefined,
    })),
  });
  return outputs.map(({ isShownBy, alt }, index) => {
    const node = nodes[index]?.data;
    return node && isShownBy(node) ? altOf(node) : alt;
  });
}

/** An image that work has made, and the node that received it. */
export const madeImage = (asset: string, node: string, alt: string): Made => ({ node, isShownBy: (found) => found.asset === asset, alt });
