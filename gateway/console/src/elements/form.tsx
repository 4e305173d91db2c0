/** The form of an Element: a new one, or a new version. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { Problem } from "../errors.ts";
import { Field } from "../library/field.tsx";
import { PictureDialog } from "../library/pictures.tsx";
import sheet from "../library/sheet.module.css";
import { Thumb } from "../library/thumb.tsx";
import { useSession } from "../session.ts";
import { Modal } from "../ui/dialog.tsx";
import { Button, Icon, messageOf } from "../ui/parts.tsx";
import { type Element, elements, type ElementType, MOST_SOURCES, sourceOf, typeName, TYPES } from "./calls.ts";
import styles from "./elements.module.css";
import { useCollections } from "./parts.tsx";

interface Props {
  /** What is changed. A new one is made without it. */
  element?: Element;
  /** The ids of the images that a new one begins with. */
  images?: string[];
  done: (element: Element) => void;
  close: () => void;
}

const MOST_COLLECTIONS = 24;
const NONE: string[] = [];

/** Refusals by field. */
function problemsOf(error: unknown): Record<string, string> {
  const fields = error instanceof Problem ? error.fields : [];
  const problems: Record<string, string> = {};
  for (const { field, message } of fields) {
    const name = /^(?:element\.)?(name|guidelines|sourceAssetIds)/.exec(field)?.[1] ?? "";
    problems[name] ??= name === "" ? `${field} ${message}` : message;
  }
  return fields.length > 0 ? problems : { "": messageOf(error) };
}

const toggle = (list: string[], id: string) => (list.includes(id) ? list.filter((one) => one !== id) : [...list, id]);

export function ElementForm({ element, images = NONE, done, close }: Props) {
  const { account } = useSession();
  const queries = useQueryClient();
  const prefix = useId();
  const [name, setName] = useState(element?.name ?? "");
  const [type, setType] = useState<ElementType>(element?.type ?? "character");
  const [guidelines, setGuidelines] = useState(element?.guidelines ?? "");
  const [sources, setSources] = useState(element?.sourceAssetIds ?? images.slice(0, MOST_SOURCES));
  const [members, setMembers] = useState<string[]>([]);
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [isChoosing, setIsChoosing] = useState(false);
  const [isSaving, setIsSaving] = useState(false);
  const owner = element?.ownerUid ?? account.id;
  const collections = useCollections();

  async function save(event: FormEvent) {
    event.preventDefault();
    event.stopPropagation();
    const lacking = {
      ...(name.trim() === "" && { name: "Give it a name." }),
      ...(sources.length === 0 && guidelines.trim() === "" && { sourceAssetIds: "Add an image, or write guidelines." }),
    };
    setProblems(lacking);
    if (Object.keys(lacking).length > 0) {
      document.getElementById(`${prefix}${"name" in lacking ? "name" : "sources"}`)?.focus();
      return;
    }
    setIsSaving(true);
    try {
      const content = { name, type, sourceAssetIds: sources, ...(guidelines.trim() !== "" && { guidelines }) };
      const saved = await (element ? elements.update(element.id, content) : elements.create({ ...content, collectionIds: members }));
      void queries.invalidateQueries({ queryKey: ["elements"] });
      done(saved);
    } catch (error) {
      setProblems(problemsOf(error));
      setIsSaving(false);
    }
  }

  return (
    <Modal title={element ? `Edit ${element.name}` : "New Element"} close={close}>
      <form className={sheet.form} noValidate onSubmit={(event) => void save(event)}>
        <Field label="Name" id={`${prefix}name`} problem={problems["name"]}>
          {(shared) => <input {...shared} type="text" dir="auto" maxLength={160} value={name} onChange={({ target }) => setName(target.value)} />}
        </Field>
        <Field label="Type" id={`${prefix}type`}>
          {(shared) => (
            <select {...shared} value={type} onChange={({ target }) => setType(target.value as ElementType)}>
              {TYPES.map((one) => (
                <option key={one} value={one}>
                  {typeName(one)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Guidelines" id={`${prefix}guidelines`} problem={problems["guidelines"]}>
          {(shared) => (
            <textarea {...shared} rows={4} dir="auto" maxLength={2000} placeholder="What has to stay the same, in words. They join the prompt." value={guidelines} onChange={({ target }) => setGuidelines(target.value)} />
          )}
        </Field>
        <div className={sheet.field} role="group" aria-labelledby={`${prefix}sources-label`}>
          <span id={`${prefix}sources-label`}>
            Source images, {sources.length} of {MOST_SOURCES}
          </span>
          <ul className={styles.sources}>
            {sources.map((id, index) => (
              <li key={id}>
                <Thumb asset={sourceOf(owner, id)} alt={`Source image ${index + 1}`} pixels={128} />
                <button
                  type="button"
                  aria-label={`Remove source image ${index + 1}`}
                  onClick={() => {
                    setSources(toggle(sources, id));
                    document.getElementById(`${prefix}sources`)?.focus();
                  }}
                >
                  <Icon name="close" size={13} />
                </button>
              </li>
            ))}
            <li>
              <button
                id={`${prefix}sources`}
                type="button"
                className={styles.add}
                aria-label="Choose source images"
                aria-describedby={problems["sourceAssetIds"] === undefined ? undefined : `${prefix}sources-problem`}
                onClick={() => setIsChoosing(true)}
              >
                <Icon name="plus" />
              </button>
            </li>
          </ul>
          {problems["sourceAssetIds"] !== undefined && (
            <p id={`${prefix}sources-problem`} className="problem">
              {problems["sourceAssetIds"]}
            </p>
          )}
        </div>
        {!element && collections && collections.length > 0 && (
          <fieldset className={styles.memberships}>
            <legend>Collections</legend>
            {collections.map(({ id, name }) => (
              <label key={id}>
                <input
                  type="checkbox"
                  checked={members.includes(id)}
                  disabled={!members.includes(id) && members.length >= MOST_COLLECTIONS}
                  onChange={() => setMembers(toggle(members, id))}
                  aria-label={name}
                />
                <bdi>{name}</bdi>
              </label>
            ))}
          </fieldset>
        )}
        {problems[""] !== undefined && (
          <p className="problem" role="alert">
            {problems[""]}
          </p>
        )}
        {element && <p className="hint">Saving makes version {element.version + 1}. Results that were made with earlier versions keep them.</p>}
        <Button look="primary" type="submit" isBusy={isSaving}>
          {isSaving ? "Saving…" : element ? `Save as version ${element.version + 1}` : "Create the Element"}
        </Button>
      </form>
      {isChoosing && (
        <PictureDialog
          title="Source images"
          source={{ isOwn: true }}
          many={{ chosen: sources.map((id) => sourceOf(owner, id)), most: MOST_SOURCES }}
          choose={({ id }) => {
            setSources((sources) => toggle(sources, id));
            setProblems({});
          }}
          close={() => {
            setIsChoosing(false);
            setTimeout(() => document.getElementById(`${prefix}sources`)?.focus());
          }}
        />
      )}
    </Modal>
  );
}
