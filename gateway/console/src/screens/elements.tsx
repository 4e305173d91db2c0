/** The Elements of an account: a gallery, and one of them if the address names it. */
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { type Element, elements as calls, typeName } from "../elements/calls.ts";
import { Collections } from "../elements/collections.tsx";
import { ElementForm } from "../elements/form.tsx";
import { Health, Preview, useCollections } from "../elements/parts.tsx";
import { ago, count } from "../format.ts";
import { useSession } from "../session.ts";
import { useAddress, useClock, useNextPages, usePages, useSettled, useTitle } from "../ui/hooks.ts";
import { Button, Empty, Failure, Icon, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Choice, Filters, Search } from "../ui/search.tsx";
import { Shell } from "../ui/shell.tsx";
import cards from "./canvases.module.css";
import { ElementPage } from "./element.tsx";
import page from "./list.module.css";

export const elementPath = (id: string): string => `/elements?element=${encodeURIComponent(id)}`;

const STATES = [
  ["active", "Active"],
  ["archived", "Archived"],
] as const;

export default function Elements() {
  const { session } = useSession();
  const id = useSearchParams()[0].get("element");
  if (!session.scopes.includes("element:read")) return <NoScope />;
  return id === null ? <Gallery /> : <ElementPage key={id} id={id} />;
}

function NoScope() {
  useTitle("Elements");
  return (
    <Shell>
      <Empty title="This session may not see Elements">
        <p className={parts.text}>
          It was opened with a token that lacks <code>element:read</code>. Sign in with a link, or with a token that has it.
        </p>
      </Empty>
    </Shell>
  );
}

function Gallery() {
  useTitle("Elements");
  useClock();
  const { session } = useSession();
  const [, navigate] = useLocation();
  const { params, set, reset } = useAddress();
  const [dialog, setDialog] = useState<"new" | "collections">();
  const canChange = session.scopes.includes("element:write");
  const collections = useCollections();
  const wanted = params.get("q") ?? "";
  const state = params.get("state") === "archived" ? "archived" : "active";
  const collection = collections?.find(({ id }) => id === params.get("in"))?.id;
  const search = useSettled(wanted.trim(), 250);
  const list = usePages(["elements", state, search], (cursor, signal) => calls.list(state, search, cursor, signal), { placeholderData: keepPreviousData });
  // An Element that changes while pages are read can be on two of them.
  const all = list.data && [...new Map(list.data.pages.flatMap(({ elements }) => elements).map((element) => [element.id, element])).values()];
  const found = all?.filter(({ collectionIds }) => collection === undefined || collectionIds.includes(collection));

  // The service does not filter by collection: then all pages are read.
  const setEnd = useNextPages(list, collection !== undefined);
  const { hasNextPage, isFetching, fetchNextPage } = list;

  const create = canChange && (
    <Button look="primary" onClick={() => setDialog("new")}>
      <Icon name="plus" size={16} />
      New Element
    </Button>
  );
  const isFiltered = wanted.trim() !== "" || collection !== undefined;
  return (
    <Shell>
      <div className={page.page}>
        <div className={page.head}>
          <h1>Elements</h1>
          <div className={page.tools}>
            <Search label="Search Elements" maxLength={160} value={wanted} set={(value) => set("q", value)} />
            {collections && collections.length > 0 && (
              <Choice label="Collection" all="All collections" choices={collections.map(({ id, name }) => [id, name] as const)} value={collection ?? ""} set={(value) => set("in", value)} />
            )}
            <Filters names={STATES} value={state} set={(name) => set("state", name === "active" ? "" : name)} />
            <Button onClick={() => setDialog("collections")}>Collections</Button>
            {create}
          </div>
        </div>
        <p className="unseen" role="status">
          {found && !isFetching && isFiltered && `${count(found.length, "Element")} found`}
        </p>
        {list.isPending && <Waiting label="Loading the Elements" />}
        {list.isLoadingError && <Failure title="The Elements cannot be loaded" error={list.error} retry={list.refetch} />}
        {found && found.length > 0 && (
          <ul className={cards.grid}>
            {found.map((element) => (
              <Card key={element.id} element={element} />
            ))}
          </ul>
        )}
        {found?.length === 0 &&
          !hasNextPage &&
          (isFiltered ? (
            <Empty title="No Element matches">
              <Button onClick={reset}>Show all Elements</Button>
            </Empty>
          ) : state === "archived" ? (
            <Empty title="Nothing is archived" />
          ) : (
            <Empty title="No Elements yet">
              <p className={parts.text}>
                An Element keeps a character, a product or a style the same from image to image: a few source images, guidelines in words, and a version for each change. Choose it in <em>Make</em> on a canvas.
              </p>
              {create}
            </Empty>
          ))}
        {list.isFetchNextPageError && <Failure title="The rest cannot be loaded" error={list.error} retry={fetchNextPage} />}
        <div ref={setEnd} className={page.end} role="status">
          {list.isFetchingNextPage && "Loading more…"}
        </div>
      </div>
      {dialog === "new" && <ElementForm done={({ id }) => navigate(elementPath(id))} close={() => setDialog(undefined)} />}
      {dialog === "collections" && <Collections canChange={canChange} close={() => setDialog(undefined)} />}
    </Shell>
  );
}

function Card({ element }: { element: Element }) {
  const { id, name, type, version, ownerUid, sourceAssetIds, guidelines, sourceHealth, updatedAt } = element;
  return (
    <li>
      <Link href={elementPath(id)} className={cards.card}>
        <span className={cards.frame} data-state="made" aria-hidden="true">
          <Preview ownerUid={ownerUid} sourceAssetIds={sourceAssetIds} guidelines={guidelines} />
        </span>
        <div className={cards.text}>
          <h2 className={cards.title}>
            <bdi>{name}</bdi>
          </h2>
          <p className={cards.meta}>
            <span>{typeName(type)}</span>
            <span>v{version}</span>
            <time dateTime={updatedAt}>{ago(updatedAt)}</time>
          </p>
          {sourceAssetIds.length > 0 && sourceHealth.status !== "available" && <Health health={sourceHealth} />}
        </div>
      </Link>
    </li>
  );
}
