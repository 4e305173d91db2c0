/** One Element: what it is, its collections, its versions, and whether it is archived. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { type Element, type ElementContent, elements, type ElementVersion, sourceOf, typeName } from "../elements/calls.ts";
import styles from "../elements/elements.module.css";
import { ElementForm } from "../elements/form.tsx";
import { Health, useCollections } from "../elements/parts.tsx";
import { Problem } from "../errors.ts";
import { ago } from "../format.ts";
import sheet from "../library/sheet.module.css";
import { Thumb } from "../library/thumb.tsx";
import { useSession } from "../session.ts";
import { Confirm } from "../ui/dialog.tsx";
import { useClock, usePages, useTitle } from "../ui/hooks.ts";
import { Button, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import { Shell } from "../ui/shell.tsx";
import page from "./list.module.css";
import { Missing } from "./missing.tsx";

export function ElementPage({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({ queryKey: ["elements", "one", id], queryFn: ({ signal }) => elements.read(id, signal) });
  useTitle(data?.name ?? "Element");
  if (error instanceof Problem && (error.status === 404 || error.status === 400)) return <Missing />;
  return (
    <Shell>
      <div className={page.page}>
        <Link className={sheet.back} href="/elements">
          <Icon name="back" size={16} />
          All Elements
        </Link>
        {data ? <Details element={data} /> : error ? <Failure title="The Element cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the Element" />}
      </div>
    </Shell>
  );
}

function Details({ element }: { element: Element }) {
  useClock();
  const { session } = useSession();
  const queries = useQueryClient();
  const [dialog, setDialog] = useState<"edit" | "archive">();
  const [error, setError] = useState<unknown>();
  const { id, name, type, version, ownerUid, sourceAssetIds, guidelines, lifecycle, sourceHealth, updatedAt } = element;
  const canChange = session.scopes.includes("element:write");
  const isActive = lifecycle === "active";

  /** Shows what the service answered, and reads the lists again. */
  function changed(now: Element) {
    queries.setQueryData(["elements", "one", id], now);
    void queries.invalidateQueries({ queryKey: ["elements"] });
  }

  async function attempt(task: () => Promise<Element>) {
    setError(undefined);
    try {
      changed(await task());
    } catch (error) {
      setError(error);
    }
  }

  return (
    <>
      <header className={sheet.intro}>
        <p className={styles.kind}>
          {typeName(type)}
          {!isActive && <span>Archived</span>}
        </p>
        <h1 dir="auto">{name}</h1>
        <p className={styles.facts}>
          <span>Version {version}</span>
          <time dateTime={updatedAt}>changed {ago(updatedAt)}</time>
          {sourceAssetIds.length > 0 && <Health health={sourceHealth} />}
        </p>
        {canChange && (
          <div className={sheet.buttons}>
            {isActive ? (
              <>
                <Button look="primary" onClick={() => setDialog("edit")}>
                  Edit
                </Button>
                <Button onClick={() => setDialog("archive")}>Archive</Button>
              </>
            ) : (
              <Button look="primary" onClick={() => void attempt(() => elements.restore(id))}>
                Restore
              </Button>
            )}
          </div>
        )}
        {error !== undefined && <Notice error={error} />}
      </header>
      <div className={sheet.columns}>
        <div className={sheet.results}>
          <section className={sheet.sheet} aria-label="Content">
            <h2>Guidelines</h2>
            {guidelines ? (
              <p className={styles.guidelines} dir="auto">
                {guidelines}
              </p>
            ) : (
              <p className="hint">None. The images speak for themselves.</p>
            )}
            <h2>Source images</h2>
            {sourceAssetIds.length === 0 && <p className="hint">None. The guidelines alone guide the results.</p>}
            <ul className={styles.images}>
              {sourceAssetIds.map((source, index) => (
                <li key={source} data-missing={sourceHealth.unavailableSourceAssetIds.includes(source)}>
                  <Thumb asset={sourceOf(ownerUid, source)} alt={`Source image ${index + 1}`} pixels={384} />
                </li>
              ))}
            </ul>
          </section>
          <Memberships element={element} canChange={canChange} change={(ids) => attempt(() => elements.setCollections(id, ids))} />
        </div>
        <Versions element={element} canChange={canChange && isActive} use={(content) => attempt(() => elements.update(id, content))} />
      </div>
      {dialog === "edit" && (
        <ElementForm
          element={element}
          done={(now) => {
            changed(now);
            setDialog(undefined);
          }}
          close={() => setDialog(undefined)}
        />
      )}
      {dialog === "archive" && (
        <Confirm title={`Archive “${name}”?`} action="Archive the Element" run={async () => changed(await elements.archive(id))} close={() => setDialog(undefined)}>
          It can no longer be chosen for new images in the console. Its versions stay, and it can be restored.
        </Confirm>
      )}
    </>
  );
}

function Memberships({ element: { collectionIds }, canChange, change }: { element: Element; canChange: boolean; change: (ids: string[]) => Promise<void> }) {
  const collections = useCollections();
  const [isChanging, setIsChanging] = useState(false);
  if (!collections || collections.length === 0) return null;
  return (
    <section className={sheet.sheet} aria-label="Collections">
      <h2>Collections</h2>
      <ul className={styles.memberships}>
        {collections.map(({ id, name }) => (
          <li key={id}>
            <label>
              <input
                type="checkbox"
                aria-label={name}
                disabled={!canChange}
                // Disabled, it would lose the keyboard.
                aria-disabled={isChanging || undefined}
                checked={collectionIds.includes(id)}
                onChange={({ target }) => {
                  if (isChanging) return;
                  setIsChanging(true);
                  void change(target.checked ? [...collectionIds, id] : collectionIds.filter((one) => one !== id)).finally(() => setIsChanging(false));
                }}
              />
              <bdi>{name}</bdi>
            </label>
          </li>
        ))}
      </ul>
    </section>
  );
}

const contentOf = ({ elementName, elementType, sourceAssetIds, guidelines }: ElementVersion): ElementContent => ({ name: elementName, type: elementType, sourceAssetIds, ...(guidelines && { guidelines }) });

interface VersionsProps {
  element: Element;
  canChange: boolean;
  /** Makes a version with the content of an earlier one. */
  use: (content: ElementContent) => Promise<void>;
}

function Versions({ element: { id, version }, canChange, use }: VersionsProps) {
  const [isBusy, setIsBusy] = useState(false);
  const list = usePages(["elements", "versions", id], (cursor, signal) => elements.versions(id, cursor, signal));
  return (
    <section className={sheet.sheet} aria-label="Versions">
      <h2>Versions</h2>
      {list.isLoadingError && <Failure title="The versions cannot be loaded" error={list.error} retry={list.refetch} />}
      <ol className={styles.versions}>
        {list.data?.pages
          .flatMap(({ versions }) => versions)
          .map((one) => (
            <li key={one.version}>
              <div className={styles.versionHead}>
                <strong>v{one.version}</strong>
                <bdi>{one.elementName}</bdi>
                <time dateTime={one.createdAt}>{ago(one.createdAt)}</time>
              </div>
              {one.guidelines && <p dir="auto">{one.guidelines}</p>}
              <ul className={styles.strip}>
                {one.sourceAssetIds.map((source, index) => (
                  <li key={source}>
                    <Thumb asset={sourceOf(one.ownerUid, source)} alt={`Source image ${index + 1} of version ${one.version}`} pixels={96} />
                  </li>
                ))}
              </ul>
              {canChange && one.version !== version && (
                <Button isBusy={isBusy} onClick={() => (setIsBusy(true), void use(contentOf(one)).finally(() => setIsBusy(false)))} aria-label={`Use again: version ${one.version}`}>
                  Use again
                </Button>
              )}
            </li>
          ))}
      </ol>
      {list.hasNextPage && (
        <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </section>
  );
}
