/** What the panels beside the board show. It is fetched when the first of them is opened. */
import type { CanvasReview, CanvasSummary } from "../api.ts";
import { Review } from "../screens/review.tsx";
import type { Graph } from "../sync/graph.ts";
import { Failure, Waiting } from "../ui/parts.tsx";
import { AssetPanel } from "./asset-panel.tsx";
import type { Board, Ui } from "./board.ts";
import { Inspector } from "./inspector.tsx";
import { OutlineTree } from "./outline.tsx";
import { Make } from "./prompt.tsx";
import { Recipes } from "./recipes.tsx";
import { remediesOf } from "./remedies.ts";
import { RunList } from "./run-list.tsx";

interface Props {
  name: NonNullable<Ui["panel"]>;
  board: Board;
  canvas: string;
  graph: Graph | undefined;
  ui: Ui;
  role: CanvasSummary["accessRole"];
  /** Whether everything that was changed is saved, in this revision. */
  isSaved: boolean;
  revision: string | undefined;
  review: CanvasReview | undefined;
  error: Error | null;
  reload: () => void;
}

export function Panel({ name, board, canvas, graph, ui, role, isSaved, revision, review, error, reload }: Props) {
  if (name === "findings") {
    if (review) return <Review review={review} remedies={remediesOf(board, canvas)} />;
    return error ? <Failure title="The check cannot be loaded" error={error} retry={reload} /> : <Waiting label="Looking at the canvas" />;
  }
  if (!graph) return null;
  switch (name) {
    case "outline":
      return <OutlineTree board={board} graph={graph} ui={ui} />;
    case "inspect":
      return <Inspector board={board} canvas={canvas} nodes={board.selected} attempt={ui.attempt} />;
    case "make":
      return <Make board={board} canvas={canvas} ui={ui} />;
    case "assets":
      return <AssetPanel board={board} canvas={canvas} isOwner={role === "owner"} />;
    case "recipes":
      return <Recipes board={board} canvas={canvas} nodes={board.selected} revision={isSaved ? revision : undefined} />;
    case "runs":
      return <RunList board={board} canvas={canvas} revision={revision} />;
  }
}
