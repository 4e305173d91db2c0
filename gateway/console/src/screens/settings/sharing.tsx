import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { canvasPath } from "../../address.ts";
import { api, type CanvasSummary } from "../../api.ts";
import { count } from "../../format.ts";
import { person } from "../../person.ts";
import { useIsNear, usePages } from "../../ui/hooks.ts";
import { Avatar, Button, Empty } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { membersKey, ShareDialog } from "../share-dialog.tsx";
import { Listed } from "./list.tsx";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

/** Who has access to which canvas. */
export function Sharing() {
  const list = usePages(["canvases"], api.canvases);
  const canvases = list.data?.pages.flatMap((page) => page.canvases) ?? [];
  return (
    <Section title="Sharing" lead="Who else may read or change your canvases, and which canvases others share with you.">
      <Listed
        list={list}
        noun="canvases"
        isEmpty={canvases.length === 0}
        empty={
          <Empty title="No canvases yet">
            <p className={parts.text}>A canvas is shared with the account of an email, to view or to edit. Agents of that account have the same access.</p>
          </Empty>
        }
      >
        <ul className={styles.rows} aria-label="Canvases">
          {canvases.map((canvas) => (canvas.accessRole === "owner" ? <Owned key={canvas.handle} canvas={canvas} /> : <Shared key={canvas.handle} canvas={canvas} />))}
        </ul>
      </Listed>
    </Section>
  );
}

const Title = ({ canvas }: { canvas: CanvasSummary }) => (
  <Link href={canvasPath(canvas)}>
    <bdi>{canvas.title || "Untitled"}</bdi>
  </Link>
);

/** A canvas of this account. Its members are read when it is near the screen. */
function Owned({ canvas }: { canvas: CanvasSummary }) {
  const [row, setRow] = useState<HTMLElement | null>(null);
  const [isOpen, setIsOpen] = useState(false);
  const isNear = useIsNear(row);
  const { data } = useQuery({ queryKey: membersKey(canvas), queryFn: ({ signal }) => person.members(canvas, signal), enabled: isNear });
  return (
    <li ref={setRow} className={styles.row}>
      <div className={styles.what}>
        <h3>
          <Title canvas={canvas} />
        </h3>
        <p className={styles.members}>
          {data?.slice(0, 5).map(({ email, role }) => (
            <span key={email} title={`${email}, ${role}`}>
              <Avatar name={email} size={22} />
            </span>
          ))}
          <span>{data === undefined ? "…" : data.length === 0 ? "Only you" : `You and ${count(data.length, "member")}`}</span>
        </p>
      </div>
      <Button aria-label={`Share ${canvas.title || "Untitled"}`} onClick={() => setIsOpen(true)}>
        Share…
      </Button>
      {isOpen && <ShareDialog canvas={canvas} close={() => setIsOpen(false)} />}
    </li>
  );
}

function Shared({ canvas }: { canvas: CanvasSummary }) {
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <Title canvas={canvas} />
          <span className={styles.tag}>{canvas.accessRole}</span>
        </h3>
        <p className={styles.meta}>
          <span>
            owned by account <code>{canvas.ownerUid}</code>
          </span>
        </p>
      </div>
    </li>
  );
}
