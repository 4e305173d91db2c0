/** What people think of a picture, as buttons. */
import styles from "../screens/look.module.css";
import { Tool } from "../screens/look.tsx";
import type { Node } from "../sync/graph.ts";
import { Icon } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import { FAVORITE, LABELS, marksOf, rate, toggleMark } from "./marks.ts";

export function MarkButtons({ board, node }: { board: Board; node: Node }) {
  const { isFavorite, rating, label } = marksOf(node);
  return (
    <div className={styles.marks} role="group" aria-label="Marks, which everybody on this canvas sees" title="Everybody on this canvas sees this">
      <Tool label="Favorite" keys={["F"]} isPressed={isFavorite} run={() => toggleMark(board, FAVORITE, [node])}>
        <span className={styles.mark} data-heart data-on={isFavorite || undefined}>
          <Icon name="heart" />
        </span>
      </Tool>
      <div>
        {[1, 2, 3, 4, 5].map((stars) => (
          <Tool key={stars} label={stars === 1 ? "1 star" : `${stars} stars`} keys={[String(stars)]} isPressed={rating === stars} run={() => rate(board, rating === stars ? 0 : stars, [node])}>
            <span className={styles.mark} data-on={stars <= rating || undefined}>
              {stars <= rating ? "★" : "☆"}
            </span>
          </Tool>
        ))}
      </div>
      <div>
        {LABELS.map((one, index) => (
          <Tool key={one} label={`Label: ${one}`} keys={[String(6 + index)]} isPressed={label === one} run={() => toggleMark(board, `label:${one}`, [node])}>
            <span className={styles.dot} data-label={one} />
          </Tool>
        ))}
      </div>
    </div>
  );
}
