/** What is beside the list of keys: the guide, what is new, and about this service. */
import { useState } from "react";
import { GUIDES } from "./guides.ts";
import styles from "./help.module.css";
import { laterDialog } from "./later.tsx";
import { Button } from "./parts.tsx";

const AboutDialog = laterDialog("About", async () => ({ default: (await import("./about-dialog.tsx")).AboutDialog }));

export function Help() {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <nav className={styles.help} aria-label="Help">
      <a href={GUIDES.console} target="_blank" rel="noreferrer">
        Guide
      </a>
      <a href={GUIDES.news} target="_blank" rel="noreferrer">
        What is new
      </a>
      <Button look="quiet" onClick={() => setIsOpen(true)}>
        About
      </Button>
      {isOpen && <AboutDialog close={() => setIsOpen(false)} />}
    </nav>
  );
}
