import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { admin, type Work, type WorkStatus } from "../../admin.ts";
import { ago, number } from "../../format.ts";
import { useClock, usePages } from "../../ui/hooks.ts";
import { Button, Notice } from "../../ui/parts.tsx";
import { Filter, Listed } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

const STATES: Record<WorkStatus, string> = { active: "Active", succeeded: "Succeeded", failed: "Failed", canceled: "Canceled" };

export function WorkOfAll() {
  useClock();
  const [params, setParams] = useSearchParams();
  const named = params.get("status");
  const status = named !== null && Object.hasOwn(STATES, named) ? (named as WorkStatus) : undefined;
  const list = usePages(["admin", "work", status], (cursor, signal) => admin.work(status, cursor, signal), { staleTime: 0 });
  const work = list.data?.pages.flatMap((page) => page.jobs) ?? [];
  return (
    <Section
      title="Work"
      lead="Jobs and Recipe runs of all accounts, newest first. What they make is not shown here."
      action={<Filter label="Show" value={status ?? ""} choices={STATES} choose={(value) => setParams(value === "" ? {} : { status: value }, { replace: true })} />}
    >
      <Listed list={list} noun="jobs" isEmpty={work.length === 0}>
        <ul className={styles.rows} aria-label="Work">
          {work.map((one) => (
            <Row key={one.id} work={one} />
          ))}
        </ul>
      </Listed>
    </Section>
  );
}

function Row({ work }: { work: Work }) {
  const queries = useQueryClient();
  const cancel = useMutation({ mutationFn: () => admin.cancel(work.id), onSettled: () => queries.invalidateQueries({ queryKey: ["admin", "work"] }) });
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          {work.operation}
          <span className={styles.tag}>{work.status}</span>
        </h3>
        <p className={styles.meta}>
          <Link href={`/admin/accounts/${work.account}`}>{work.account}</Link>
          <span>accepted {ago(work.createdAt)}</span>
          <span>{number(work.creditCost)} credits</span>
          {work.claims !== undefined && work.claims > 1 && <span>claimed {work.claims} times</span>}
        </p>
        <p className={styles.lead}>{work.id}</p>
        {cancel.error && <Notice error={cancel.error} />}
      </div>
      {work.completedAt === undefined && (
        <Button isBusy={cancel.isPending} aria-label={`Cancel ${work.id}`} onClick={() => cancel.mutate()}>
          Cancel
        </Button>
      )}
    </li>
  );
}
