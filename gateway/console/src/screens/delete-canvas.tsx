import { useQueryClient } from "@tanstack/react-query";
import type { CanvasSummary } from "../api.ts";
import { count } from "../format.ts";
import { person } from "../person.ts";
import { Confirm } from "../ui/dialog.tsx";

/** Deletes a canvas for good, once its owner has typed a word. */
export function DeleteCanvas({ canvas, close }: { canvas: CanvasSummary; close: () => void }) {
  const queries = useQueryClient();
  return (
    <Confirm
      title={`Delete “${canvas.title || "Untitled"}”?`}
      action="Delete for good"
      word="delete"
      run={() => person.deleteCanvas(canvas)}
      done={() => void queries.invalidateQueries({ queryKey: ["canvases"] })}
      close={close}
    >
      <p>
        The canvas goes with its <strong>{count(canvas.nodeCount, "thing")}</strong>, its history, its shares and the images that are stored in it. Nothing brings it back.
      </p>
      <p>It is refused while work is under way on the canvas.</p>
    </Confirm>
  );
}
