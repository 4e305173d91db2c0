import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { type AccountDelivery, admin, type DeliveryStatus } from "../../admin.ts";
import { ago, count } from "../../format.ts";
import { useClock, usePages } from "../../ui/hooks.ts";
import { Button, Notice } from "../../ui/parts.tsx";
import { Filter, Listed } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

const STATES: Record<DeliveryStatus, string> = { failed: "Failed", pending: "Waiting", delivering: "Delivering", delivered: "Delivered" };

export function Deliveries() {
  useClock();
  const [params, setParams] = useSearchParams();
  const named = params.get("status") ?? "failed";
  const status = Object.hasOwn(STATES, named) ? (named as DeliveryStatus) : undefined;
  const list = usePages(["admin", "deliveries", status], (cursor, signal) => admin.deliveries(status, cursor, signal), { staleTime: 0 });
  const deliveries = list.data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <Section
      title="Deliveries"
      lead="Webhooks of all accounts, without their addresses."
      action={<Filter label="Show" value={status ?? ""} choices={STATES} choose={(value) => setParams({ status: value === "" ? "all" : value }, { replace: true })} />}
    >
      <Listed list={list} noun="deliveries" isEmpty={deliveries.length === 0}>
        <ul className={styles.rows} aria-label="Deliveries">
          {deliveries.map((delivery) => (
            <Row key={delivery.webhook.id} delivery={delivery} />
          ))}
        </ul>
      </Listed>
    </Section>
  );
}

function Row({ delivery: { account, run, webhook, createdAt } }: { delivery: AccountDelivery }) {
  const queries = useQueryClient();
  const done = () => queries.invalidateQueries({ queryKey: ["admin", "deliveries"] });
  const replay = useMutation({ mutationFn: () => admin.replay({ ids: [webhook.id] }), onSettled: done });
  const { status, attempts, lastStatus, errorCode } = webhook;
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <span className={styles.state} data-state={status}>
            {STATES[status]}
          </span>
          {errorCode !== undefined && <code>{errorCode}</code>}
        </h3>
        <p className={styles.meta}>
          <Link href={`/admin/accounts/${account}`}>{account}</Link>
          <span>{count(attempts, "attempt")}</span>
          {lastStatus !== undefined && <span>answered {lastStatus}</span>}
          <span>run started {ago(createdAt)}</span>
        </p>
        <p className={styles.lead}>{run}</p>
        {replay.error && <Notice error={replay.error} />}
      </div>
      {(status === "failed" || status === "delivered") && (
        <Button isBusy={replay.isPending} aria-label={`Send again: delivery of ${run}`} onClick={() => replay.mutate()}>
          Send again
        </Button>
      )}
    </li>
  );
}
