import { useQuery } from "@tanstack/react-query";
import { admin } from "../../admin.ts";
import { ago, count, lasted } from "../../format.ts";
import { useClock } from "../../ui/hooks.ts";
import { Waiting } from "../../ui/parts.tsx";
import { Refused } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

/** How often the state is read while it is looked at, in milliseconds. */
const PACE = 10_000;
const STATES = { ok: "Working", slow: "Slow", silent: "No worker" } as const;
const LOOKS = { ok: "delivered", slow: "pending", silent: "failed" } as const;

export function Health() {
  useClock();
  const { data, error, refetch } = useQuery({ queryKey: ["admin", "health"], queryFn: ({ signal }) => admin.health(signal), refetchInterval: PACE, staleTime: 0 });
  return (
    <Section title="Health" lead="What the gateway needs, and the workers of each queue.">
      {!data && (error ? <Refused title="The state cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the state" />)}
      {data && (
        <>
          <ul className={styles.rows} aria-label="Components and queues">
            {data.components.map(({ name, ok }) => (
              <li key={name} className={styles.row}>
                <div className={styles.what}>
                  <h3>
                    <span className={styles.state} data-state={ok ? "delivered" : "failed"}>
                      {name}
                    </span>
                    <span className={styles.of}>{ok ? "answers" : "does not answer"}</span>
                  </h3>
                </div>
              </li>
            ))}
            {data.queues.map((queue) => (
              <li key={queue.queue} className={styles.row}>
                <div className={styles.what}>
                  <h3>
                    <span className={styles.state} data-state={LOOKS[queue.state]}>
                      {queue.queue}
                    </span>
                    <span className={styles.of}>{STATES[queue.state]}</span>
                  </h3>
                  <p className={styles.meta}>
                    <span>{count(queue.workers, "worker")}</span>
                    {queue.oldestWaitingSeconds > 0 && <span>oldest work waits {lasted(queue.oldestWaitingSeconds * 1000)}</span>}
                    {queue.lastSeenAt && <span>seen {ago(queue.lastSeenAt)}</span>}
                  </p>
                </div>
              </li>
            ))}
          </ul>
          <p className={styles.lead}>
            Gateway {data.versions.gateway}, schema {data.versions.schema}, workers {data.versions.workers.join(", ") || "none"}.
          </p>
        </>
      )}
    </Section>
  );
}
