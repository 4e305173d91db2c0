/** A text to copy: an id or a handle. */
import { useEffect, useState } from "react";
import styles from "./copy.module.css";
import { Icon } from "./parts.tsx";

/** How long a copy is confirmed, in milliseconds. */
const CONFIRMED = 2000;

export function Copy({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(0);
  useEffect(() => {
    if (copied === 0) return;
    const timer = setTimeout(() => setCopied(0), CONFIRMED);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <span className={styles.copy}>
      <code>{text}</code>
      <button
        type="button"
        aria-label={`Copy ${label}`}
        title={`Copy ${label}`}
        // Where the clipboard is not allowed, the text can be selected.
        onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied((copied) => copied + 1), () => {})}
      >
        <Icon name={copied > 0 ? "check" : "copy"} size={15} />
      </button>
      <span className="unseen" role="status">
        {copied > 0 && "Copied"}
      </span>
    </span>
  );
}
