/** The collections of Elements: made, renamed and deleted. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { count } from "../format.ts";
import { Confirm, Modal } from "../ui/dialog.tsx";
import { Button, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import { type Collection, collections } from "./calls.ts";
import styles from "./elements.module.css";
import { useCollectionsQuery } from "./parts.tsx";

const MOST_LETTERS = 120;

export function Collections({ canChange, close }: { canChange: boolean; close: () => void }) {
  const queries = useQueryClient();
  const { data: list, error: failure, refetch } = useCollectionsQuery();
  const [name, setName] = useState("");
  const [error, setError] = useState<unknown>();
  const [isCreating, setIsCreating] = useState(false);
  const changed = () => Promise.all([queries.invalidateQueries({ queryKey: ["collections"] }), queries.invalidateQueries({ queryKey: ["elements"] })]);

  async function create(event: FormEvent) {
    event.preventDefault();
    if (name.trim() === "" || isCreating) return;
    setError(undefined);
    setIsCreating(true);
    try {
      await collections.create(name.trim());
      setName("");
      await changed();
    } catch (error) {
      setError(error);
    }
    setIsCreating(false);
  }

  return (
    <Modal title="Collections" close={close}>
      {!list && (failure ? <Failure title="The collections cannot be loaded" error={failure} retry={refetch} /> : <Waiting label="Loading the collections" />)}
      <p className={styles.hint} role="status">
        {list && (list.length === 0 ? "Collections group Elements, for example by product or campaign. An Element can be in several." : count(list.length, "collection"))}
      </p>
      {list && list.length > 0 && (
        <ul className={styles.rows}>
          {list.map((collection) => (
            <Row key={collection.id} collection={collection} canChange={canChange} changed={changed} />
          ))}
        </ul>
      )}
      {canChange && (
        <form className={styles.line} onSubmit={(event) => void create(event)}>
          <input type="text" aria-label="Name of a new collection" placeholder="New collection" dir="auto" required maxLength={MOST_LETTERS} value={name} onChange={({ target }) => setName(target.value)} />
          <Button type="submit" isBusy={isCreating}>
            <Icon name="plus" size={16} />
            Create
          </Button>
        </form>
      )}
      {error !== undefined && <Notice error={error} />}
    </Modal>
  );
}

function Row({ collection: { id, name }, canChange, changed }: { collection: Collection; canChange: boolean; changed: () => Promise<unknown> }) {
  const button = useRef<HTMLButtonElement>(null);
  const [draft, setDraft] = useState<string>();
  const [isDeleting, setIsDeleting] = useState(false);
  const [error, setError] = useState<unknown>();

  /** Ends the renaming. The keyboard stays in the row, unless it has gone elsewhere since. */
  function end() {
    flushSync(() => setDraft(undefined));
    if (document.activeElement === document.body) button.current?.focus();
  }

  async function rename(event: FormEvent) {
    event.preventDefault();
    setError(undefined);
    try {
      if (draft !== undefined && draft.trim() !== "" && draft.trim() !== name) {
        await collections.rename(id, draft.trim());
        await changed();
      }
      end();
    } catch (error) {
      setError(error);
    }
  }

  return (
    <li>
      {draft === undefined ? (
        <div className={styles.line}>
          <bdi>{name}</bdi>
          {canChange && (
            <>
              <Button ref={button} look="quiet" aria-label={`Rename ${name}`} onClick={() => setDraft(name)}>
                Rename
              </Button>
              <Button look="quiet" aria-label={`Delete ${name}`} onClick={() => setIsDeleting(true)}>
                Delete
              </Button>
            </>
          )}
        </div>
      ) : (
        <form className={styles.line} onSubmit={(event) => void rename(event)}>
          {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked to rename it */}
          <input autoFocus type="text" aria-label={`New name of ${name}`} dir="auto" maxLength={MOST_LETTERS} value={draft} onChange={({ target }) => setDraft(target.value)} />
          <Button type="submit">Save</Button>
          <Button look="quiet" onClick={end}>
            Cancel
          </Button>
        </form>
      )}
      {error !== undefined && <Notice error={error} />}
      {isDeleting && (
        <Confirm title={`Delete “${name}”?`} action="Delete the collection" run={async () => (await collections.delete(id), changed())} close={() => setIsDeleting(false)}>
          Its Elements stay, and are no longer in it.
        </Confirm>
      )}
    </li>
  );
}
