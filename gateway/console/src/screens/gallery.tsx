/** What a new canvas can begin with. */
import { useState } from "react";
import { useLocation } from "wouter";
import { canvasPath } from "../address.ts";
import { Picture, urlOf } from "../samples/pictures.tsx";
import { useSession } from "../session.ts";
import { Modal } from "../ui/dialog.tsx";
import { Button, Notice } from "../ui/parts.tsx";
import { type Attempt, begin } from "./begin.ts";
import styles from "./gallery.module.css";
import { SAMPLE, type Template, TEMPLATES } from "./templates.ts";

const BLANK: Template = { id: "blank", title: "Blank", says: "An empty board.", images: [], operations: () => [] };

/** Its images are stored in the account, and Actions are run on them. */
const isSampled = (scopes: string[]): boolean => scopes.includes("image:generate") && scopes.includes("asset:read");

/** Makes canvases. Another attempt at a template is the same attempt, so it makes no second canvas. */
function useBeginning() {
  const { account } = useSession();
  const [, navigate] = useLocation();
  const [attempts] = useState(() => new Map<string, Attempt>());
  const [busy, setBusy] = useState<string>();
  const [error, setError] = useState<unknown>();
  async function make(template: Template) {
    if (busy !== undefined) return;
    setBusy(template.id);
    setError(undefined);
    const attempt: Attempt = attempts.get(template.id) ?? { id: crypto.randomUUID(), ownerUid: account.id };
    attempts.set(template.id, attempt);
    try {
      await begin(attempt, template, (image) => urlOf(image) ?? "");
      navigate(canvasPath(attempt));
    } catch (error) {
      setError(error);
      setBusy(undefined);
    }
  }
  return { busy, error, make };
}

/** What a new canvas can begin with: nothing, or a template. */
function Choices({ isFirst = false }: { isFirst?: boolean }) {
  const { session } = useSession();
  const { busy, error, make } = useBeginning();
  return (
    <>
      {error !== undefined && <Notice error={error} />}
      <ul className={styles.gallery}>
        {[BLANK, ...TEMPLATES, ...(!isFirst && isSampled(session.scopes) ? [SAMPLE] : [])].map((template, at) => (
          <li key={template.id}>
            <button type="button" className={styles.template} data-first={at === 0 || undefined} aria-busy={busy === template.id} aria-disabled={busy !== undefined || undefined} onClick={() => void make(template)}>
              {template === BLANK ? <span className={styles.blank} /> : <Picture name={template.id} />}
              <strong>{template.title}</strong>
              <span>{busy === template.id ? "Making it…" : template.says}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

export function Gallery({ close }: { close: () => void }) {
  return (
    <Modal title="New canvas" isWide close={close}>
      <p className={styles.lead}>Templates have places for images and texts. They cost no credits.</p>
      <Choices />
    </Modal>
  );
}

/** For an account without canvases: the sample, if the session may make it, and what a canvas can begin with. */
export function Beginning() {
  const { session } = useSession();
  const { busy, error, make } = useBeginning();
  return (
    <div className={styles.beginning}>
      {isSampled(session.scopes) && (
        <section className={styles.sample}>
          <Picture name={SAMPLE.id} />
          <div>
            <p>{SAMPLE.says} It costs no credits, and you can delete it.</p>
            <Button look="primary" isBusy={busy !== undefined} onClick={() => void make(SAMPLE)}>
              {busy === undefined ? "Try the sample campaign" : "Making it…"}
            </Button>
            {error !== undefined && <Notice error={error} />}
          </div>
        </section>
      )}
      <h2>{isSampled(session.scopes) ? "Or begin your own" : "Begin with"}</h2>
      <Choices isFirst />
    </div>
  );
}
