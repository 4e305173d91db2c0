import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { RunSummary } from "../../api.ts";
import { ago, moment, until } from "../../format.ts";
import { type Delivery, type DeliveryError, type DeliveryStatus, person } from "../../person.ts";
import { GUIDES } from "../../ui/guides.ts";
import { useAddress, useClock, usePages } from "../../ui/hooks.ts";
import { Button, Empty, Notice } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { Facts, Filter, keyIn, Listed } from "./list.tsx";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";
import { useWork } from "./work.ts";
import { WorkLink } from "./work-link.tsx";

const STATUSES: Record<DeliveryStatus, string> = { pending: "Waiting", delivering: "Delivering", delivered: "Delivered", failed: "Failed" };

/** The most attempts of a delivery, beside replays. */
const ATTEMPTS = 4;

/** How often the list is read while a delivery is under way, in milliseconds. */
const PACE = 3000;

const ERRORS: Record<DeliveryError, string> = {
  invalid_destination: "The address is not a public HTTPS address.",
  delivery_failed: "The receiver could not be reached, or answered with an error that may pass, in every attempt.",
  redirect_not_allowed: "The receiver redirects. Redirects are not followed: start runs with the final address.",
  endpoint_rejected: "The receiver refused it with a status that another attempt does not change.",
  secret_unavailable: "The secret can no longer be decrypted. Whoever runs the service has removed its key.",
  finalization_unavailable: "The result was not available.",
  finalization_auth_unavailable: "The result was not available.",
  finalization_auth_expired: "The result was not available.",
  finalization_failed: "The record of the run cannot be read, so there is nothing to send.",
};

export function Webhooks() {
  useClock();
  const { params, set } = useAddress();
  const status = keyIn(STATUSES, params.get("status"));
  const list = usePages(["deliveries", status], (cursor, signal) => person.deliveries(status, cursor, signal), {
    staleTime: 0,
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ deliveries }) => deliveries.some(({ webhook }) => webhook.status === "pending" || webhook.status === "delivering")) ? PACE : false,
  });
  const work = useWork();
  const deliveries = list.data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <Section
      title="Webhooks"
      lead="A run that is started with a webhook announces its end with one signed request."
      action={<Filter label="Show" value={status ?? ""} choices={STATUSES} choose={(value) => set("status", value)} />}
    >
      <Listed
        list={list}
        noun="deliveries"
        isEmpty={deliveries.length === 0}
        empty={
          <Empty title={status ? "No such deliveries" : "No deliveries yet"}>
            <p className={parts.text}>
              {status
                ? "No delivery of the last 30 days is in this state."
                : "Webhooks are set by programs when they start work. Each delivery then appears here, for 30 days after its last attempt."}
            </p>
          </Empty>
        }
      >
        <ul className={styles.rows} aria-label="Deliveries">
          {deliveries.map((delivery) => (
            <DeliveryRow key={delivery.webhook.id} delivery={delivery} work={work} />
          ))}
        </ul>
      </Listed>
      <Verification />
    </Section>
  );
}

function DeliveryRow({ delivery: { run, webhook, createdAt }, work }: { delivery: Delivery; work: Map<string, RunSummary> }) {
  const queries = useQueryClient();
  const replay = useMutation({
    mutationFn: () => person.replay(webhook.id),
    onSettled: () => queries.invalidateQueries({ queryKey: ["deliveries"] }),
  });
  const { status, attempts, nextAttemptAt, lastAttemptAt, deliveredAt, lastStatus, errorCode } = webhook;
  const isOver = status === "delivered" || status === "failed";
  const facts: [string, string | undefined][] = [
    ["Delivery", webhook.id],
    ["Run", run],
    ["Run started", moment(createdAt)],
    ["Last attempt", lastAttemptAt && moment(lastAttemptAt)],
    ["Answer", lastStatus === undefined ? lastAttemptAt && "none" : `status ${lastStatus}`],
    ["Delivered", deliveredAt && moment(deliveredAt)],
    ["Next attempt", nextAttemptAt && moment(nextAttemptAt)],
    ["Reason", errorCode && `${ERRORS[errorCode]} (${errorCode})`],
  ];
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <span className={styles.state} data-state={status}>
            {STATUSES[status]}
          </span>
          <span className={styles.of}>
            <WorkLink handle={run} work={work} />
          </span>
        </h3>
        <p className={styles.meta}>
          <span>
            {attempts} of {ATTEMPTS} attempts
          </span>
          {nextAttemptAt && status === "pending" && <span>next {until(nextAttemptAt)}</span>}
          <span>run started {ago(createdAt)}</span>
        </p>
        {status === "failed" && errorCode && <p className={styles.reason}>{ERRORS[errorCode]}</p>}
        <Facts facts={facts} />
        {replay.error && <Notice error={replay.error} />}
        <p className="unseen" role="status">
          {replay.isSuccess && "Sent again"}
        </p>
      </div>
      {isOver && (
        <Button isBusy={replay.isPending} title="Sends the same event once more, with a new signature" aria-label={`Send again: delivery of ${run}`} onClick={() => replay.mutate()}>
          Send again
        </Button>
      )}
    </li>
  );
}

/** How a receiver knows that a request is from this service. */
function Verification() {
  return (
    <details className={styles.verification}>
      <summary>How a receiver verifies signatures</summary>
      <p>
        Each request has the headers <code>webhook-id</code>, <code>webhook-timestamp</code> and <code>webhook-signature</code> of{" "}
        <strong>Standard Webhooks</strong>. The signature is <code>v1,</code> and the base64 of HMAC-SHA256 over <code>id.timestamp.body</code>, keyed with the bytes
        of the secret that the start named. Compare in constant time, refuse timestamps that are more than five minutes old, and do nothing twice for one id.
      </p>
      <pre tabIndex={0} role="region" aria-label="A signature in a shell">
        {`printf '%s.%s.%s' "$ID" "$TIMESTAMP" "$BODY" | openssl dgst -sha256 -hmac "$SECRET" -binary | base64`}
      </pre>
      <p>
        Libraries take the secret as <code>whsec_</code> and its base64. The <a href="/docs">API documentation</a> has the events; the{" "}
        <a href={GUIDES.webhooks}>guide to webhooks</a> has complete receivers in three languages.
      </p>
    </details>
  );
}
