/** Dialogs above a page. The browser keeps the keyboard in them, closes them on Escape and gives the keyboard back. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import styles from "./dialog.module.css";
import { Button, Icon, Notice } from "./parts.tsx";

export function Dialog({ label, className, close, children }: { label: string; className: string | undefined; close: () => void; children: ReactNode }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- Escape closes a dialog
    <dialog ref={element} aria-label={label} className={className} onClose={close} onClick={({ target, currentTarget }) => target === currentTarget && close()}>
      {children}
    </dialog>
  );
}

/** A dialog with a heading and a button that closes it. */
export function Modal({ title, isWide = false, close, children }: { title: string; isWide?: boolean; close: () => void; children: ReactNode }) {
  return (
    <Dialog label={title} className={isWide ? styles.wide : styles.modal} close={close}>
      <header className={styles.head}>
        <h2 dir="auto">{title}</h2>
        <Button look="quiet" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </Button>
      </header>
      <div className={styles.body}>{children}</div>
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What is done, on the button. */
  action: string;
  run: () => Promise<unknown>;
  close: () => void;
  children: ReactNode;
}

/** Asks before something is done. A failure is shown, and the question stays. */
export function Confirm({ title, action, run, close, children }: ConfirmProps) {
  const [error, setError] = useState<unknown>();
  const [isRunning, setIsRunning] = useState(false);

  async function confirm() {
    setIsRunning(true);
    setError(undefined);
    try {
      await run();
      close();
    } catch (error) {
      setError(error);
      setIsRunning(false);
    }
  }

  return (
    <Modal title={title} close={close}>
      <p>{children}</p>
      {error !== undefined && <Notice error={error} />}
      <footer className={styles.foot}>
        <Button onClick={close}>Keep it</Button>
        <Button look="primary" disabled={isRunning} onClick={() => void confirm()}>
          {action}
        </Button>
      </footer>
    </Modal>
  );
}
