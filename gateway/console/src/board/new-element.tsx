/** Makes an Element from the selected images. */
import { ElementForm } from "../elements/form.tsx";
import { useSession } from "../session.ts";
import type { Board } from "./board.ts";

export function NewElement({ board, close }: { board: Board; close: () => void }) {
  // An Element has images of the person's own account alone.
  const own = `asset:${useSession().account.id}:`;
  const ids = board.selected.flatMap(({ asset }) => (asset?.startsWith(own) ? asset.slice(own.length) : []));
  return (
    <ElementForm
      images={[...new Set(ids)]}
      done={({ name }) => {
        close();
        board.notify(`${name} is an Element now. Choose it in Make.`);
      }}
      close={close}
    />
  );
}
