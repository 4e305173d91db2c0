/** Dialogs over the page. */
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import styles from "./dialog.module.css";
import { Button, Icon, Notice } from "./parts.tsx";

interface DialogProps {
  label: string;
  className: string | undefined;
  close: () => void;
  children: ReactNode;
}

/**
 * A modal dialog without content of its own. It is a child of the body, so no style of what opened it reaches it. Escape and a click beside it close it. The keyboard begins at what has `data-first`, and
 * returns to what opened the dialog; with `data-done`, what opened it is about to go, and the page or the dialog around it has the keyboard.
 */
export function Dialog({ label, className, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  /** Whether the pointer was pressed beside the dialog. */
  const isBeside = useRef(false);
  useEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    const home = opener?.closest<HTMLElement>("dialog, main") ?? document.getElementById("content");
    dialog?.showModal();
    // A dialog looks for the attribute autofocus, which React does not set.
    dialog?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      dialog?.close();
      // A dialog that was removed before it was closed has given the keyboard to nobody.
      if (document.activeElement !== document.body) return;
      const isKept = opener?.isConnected && dialog?.dataset["done"] === undefined;
      if (isKept) (opener as HTMLElement | SVGElement).focus({ preventScroll: true });
      // The opener may also be in a menu that has closed.
      if (document.activeElement === document.body) home?.focus({ preventScroll: true });
    };
  }, []);
  return createPortal(
    <dialog
      ref={element}
      tabIndex={-1}
      aria-label={label}
      className={className}
      // React lets the event of a dialog within this one bubble. That of a dialog which has left the page comes late: another may be open.
      onClose={({ target, currentTarget }) => target === currentTarget && currentTarget.isConnected && close()}
      // Closed by React at once: between the browser's closing and the event that tells of it, keys would go to a field that nobody sees.
      onCancel={(event) => {
        // Fields for files have an event of this name, too, which bubbles.
        if (event.target !== event.currentTarget) return;
        event.preventDefault();
        close();
      }}
      // A press on the content and a release beside it also make a click on the dialog: a person has marked text.
      onPointerDown={({ target, currentTarget }) => void (isBeside.current = target === currentTarget)}
      onClick={({ target, currentTarget }) => target === currentTarget && isBeside.current && close()}
      // Escape closes this dialog, and not also the panel that it is in.
      onKeyDown={(event) => event.key === "Escape" && event.stopPropagation()}
    >
      {children}
    </dialog>,
    document.body,
  );
}

/** A dialog with a heading and a button that closes it. */
export function Modal({ title, isWide = false, close, children }: { title: string; isWide?: boolean; close: () => void; children: ReactNode }) {
  return (
    <Dialog label={title} className={isWide ? styles.wide : styles.modal} close={close}>
      <div className={styles.head}>
        <h2 dir="auto">{title}</h2>
        <Button look="quiet" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </Button>
      </div>
      <div className={styles.body}>{children}</div>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** The label of the button that does it. */
  action: string;
  /** A word that has to be typed before. */
  word?: string;
  run: () => Promise<unknown>;
  done?: () => void;
  close: () => void;
  /** What happens. */
  children: ReactNode;
}

/** Asks before something that cannot be undone. The keyboard begins at the button that does nothing, or at the word. */
export function Confirm({ title, action, word, run, done, close, children }: ConfirmProps) {
  const form = useRef<HTMLFormElement>(null);
  const [typed, setTyped] = useState("");
  const attempt = useMutation({
    mutationFn: run,
    onSuccess: () => {
      form.current?.closest("dialog")?.setAttribute("data-done", "");
      done?.();
      close();
    },
  });
  const isReady = word === undefined || typed.trim().toLowerCase() === word;
  return (
    <Modal title={title} close={close}>
      <form
        ref={form}
        className={styles.confirm}
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !attempt.isPending) attempt.mutate();
        }}
      >
        <div className={styles.text}>{children}</div>
        {word !== undefined && (
          <label className={styles.word}>
            <span>
              Type <strong>{word}</strong> to confirm
            </span>
            <input data-first autoComplete="off" autoCapitalize="none" spellCheck={false} value={typed} onChange={({ target }) => setTyped(target.value)} />
          </label>
        )}
        {attempt.error && <Notice error={attempt.error} />}
        <div className={styles.buttons}>
          <Button {...(word === undefined && { "data-first": true })} onClick={close}>
            Keep
          </Button>
          <Button look="danger" type="submit" isBusy={attempt.isPending} disabled={!isReady}>
            {attempt.isPending ? "One moment…" : action}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
