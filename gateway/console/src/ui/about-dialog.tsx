/** What this service is: its version, its license, and the licenses of what the console is made with. */
import { useQuery } from "@tanstack/react-query";
import { send } from "../api.ts";
import styles from "./about-dialog.module.css";
import { Modal } from "./dialog.tsx";
import { GUIDES } from "./guides.ts";
import { Mark } from "./parts.tsx";

/** The version of the service, from the document that tells hosts of agents about it. */
async function readVersion(signal: AbortSignal): Promise<string> {
  const response = await send(new Request("/.well-known/mcp/server.json", { signal }));
  return ((await response.json()) as { version: string }).version;
}

const LINKS = [
  [GUIDES.all, "All guides", "How to work here, write programs, and run the service"],
  [GUIDES.news, "What is new", "What each version has changed"],
  ["/docs", "API documentation", "For those who write programs"],
  ["/licenses.txt", "Licenses of the parts", "Who made what this page is built with"],
] as const;

export function AboutDialog({ close }: { close: () => void }) {
  const { data: version } = useQuery({ queryKey: ["version"], queryFn: ({ signal }) => readVersion(signal), staleTime: Infinity });
  return (
    <Modal title="About" close={close}>
      <div className={styles.product}>
        <Mark size={48} />
        <div>
          <p className={styles.name}>Canvas Service</p>
          <p className={styles.detail}>{version === undefined ? " " : `Version ${version}`}</p>
        </div>
      </div>
      <p className={styles.text}>Boards on which people and agents work with images, videos and texts together.</p>
      <p className={styles.text}>It is open source, under the Apache License 2.0. The people who run this installation are responsible for it and for what is stored in it.</p>
      <ul className={styles.links}>
        {LINKS.map(([href, label, detail]) => (
          <li key={href}>
            <a href={href} target="_blank" rel="noreferrer">
              {label}
            </a>
            <small>{detail}</small>
          </li>
        ))}
      </ul>
    </Modal>
  );
}
