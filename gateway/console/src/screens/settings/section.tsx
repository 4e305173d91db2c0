import type { ReactNode } from "react";
import styles from "./settings.module.css";

interface SectionProps {
  title: string;
  /** What it is for. */
  lead: ReactNode;
  /** What a person can do. */
  action?: ReactNode;
  children: ReactNode;
}

/** The content of a tab. */
export function Section({ title, lead, action, children }: SectionProps) {
  return (
    <section className={styles.section} aria-labelledby="section-title">
      <div className={styles.sectionHead}>
        <div>
          <h2 id="section-title">{title}</h2>
          <p className={styles.lead}>{lead}</p>
        </div>
        {action}
      </div>
      {children}
    </section>
  );
}
