/** The button that shows with whom a canvas is shared. */
import { useState } from "react";
import { laterDialog } from "../ui/later.tsx";
import { Button, Icon } from "../ui/parts.tsx";
import styles from "./share.module.css";
import type { SharedCanvas } from "./share-dialog.tsx";

export const ShareDialog = laterDialog("Share", async () => ({ default: (await import("./share-dialog.tsx")).ShareDialog }));

export function Share({ canvas }: { canvas: SharedCanvas }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <Button className={styles.share} title="Who has access" onClick={() => setIsOpen(true)}>
        <Icon name="share" size={15} />
        <span>Share</span>
      </Button>
      {isOpen && <ShareDialog canvas={canvas} close={() => setIsOpen(false)} />}
    </>
  );
}
