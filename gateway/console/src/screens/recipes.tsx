/** The gallery of Recipes: those of the service and the account's own workflows. */
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { count } from "../format.ts";
import { type Recipe, recipes as calls, type Visibility } from "../recipes/calls.ts";
import { categoriesOf, matches, tagsOf } from "../recipes/filter.ts";
import { Ports, Terms } from "../recipes/parts.tsx";
import styles from "../recipes/recipes.module.css";
import { Picture } from "../samples/pictures.tsx";
import { useAddress, useNextPages, usePages, useSettled, useTitle } from "../ui/hooks.ts";
import { Button, Empty, Failure, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Choice, Filters, Search } from "../ui/search.tsx";
import { Shell } from "../ui/shell.tsx";
import page from "./list.module.css";
import { RecipePage } from "./recipe.tsx";

const FILTERS: [Visibility, string][] = [
  ["all", "All"],
  ["approved", "Catalog"],
  ["private", "Yours"],
];

/** One Recipe if the address names it, else the gallery. */
export default function Recipes() {
  const id = useSearchParams()[0].get("recipe");
  return id === null ? <Gallery /> : <RecipePage key={id} id={id} />;
}

function Gallery() {
  useTitle("Recipes");
  const { params, set, reset } = useAddress();
  const wanted = params.get("q") ?? "";
  const visibility = FILTERS.find(([name]) => name === params.get("show"))?.[0] ?? "all";
  const q = useSettled(wanted.trim(), 250);
  const list = usePages(["recipes", visibility, q], (cursor, signal) => calls.list(q, visibility, cursor, signal), { placeholderData: keepPreviousData });
  const filter = { category: params.get("category") ?? "", tags: params.getAll("tag") };
  const isFiltered = filter.category !== "" || filter.tags.length > 0;
  const all = list.data?.pages.flatMap(({ recipes }) => recipes);
  const found = all?.filter((recipe) => matches(recipe, filter));

  // The service searches, but does not filter: what is filtered is read as a whole.
  const setEnd = useNextPages(list, isFiltered);
  const { isFetching, fetchNextPage } = list;

  return (
    <Shell>
      <div className={page.page}>
        <div className={page.head}>
          <h1>Recipes</h1>
          <div className={page.tools}>
            <Search label="Search Recipes" maxLength={500} value={wanted} set={(value) => set("q", value)} />
            <Choice label="Category" all="All categories" choices={categoriesOf(all ?? [], filter.category).map((one) => [one, one] as const)} value={filter.category} set={(value) => set("category", value)} />
            <Filters names={FILTERS} value={visibility} set={(name) => set("show", name === "all" ? "" : name)} />
          </div>
        </div>
        <Tags tags={tagsOf(all ?? [], filter)} chosen={filter.tags} set={(tags) => set("tag", tags)} />
        <p className="unseen" role="status">
          {found && !isFetching && (q !== "" || isFiltered) && `${count(found.length, "Recipe")} found`}
        </p>
        {list.isPending && <Waiting label="Loading the Recipes" />}
        {list.isLoadingError && <Failure title="The Recipes cannot be loaded" error={list.error} retry={list.refetch} />}
        {found && found.length > 0 && (
          <ul className={styles.gallery}>
            {found.map((recipe) => (
              <Card key={recipe.handle} recipe={recipe} />
            ))}
          </ul>
        )}
        {found?.length === 0 && !list.hasNextPage && (q === "" && !isFiltered && visibility === "private" ? <NoWorkflows /> : <NothingFound reset={reset} />)}
        {list.isFetchNextPageError && <Failure title="The rest cannot be loaded" error={list.error} retry={fetchNextPage} />}
        <div ref={setEnd} className={page.end} role="status">
          {list.isFetchingNextPage && "Loading more…"}
        </div>
      </div>
    </Shell>
  );
}

const MOST_TAGS = 12;

/** Tags that the Recipes must have. */
function Tags({ tags, chosen, set }: { tags: string[]; chosen: readonly string[]; set: (tags: string[]) => void }) {
  const [isOpen, setIsOpen] = useState(false);
  if (tags.length === 0) return null;
  const shown = isOpen ? tags : tags.slice(0, Math.max(MOST_TAGS, chosen.length));
  return (
    <fieldset className={styles.tags}>
      <legend className="unseen">Tags</legend>
      {shown.map((tag) => (
        <label key={tag}>
          <input type="checkbox" checked={chosen.includes(tag)} onChange={({ target }) => set(target.checked ? [...chosen, tag] : chosen.filter((one) => one !== tag))} />
          <bdi>{tag}</bdi>
        </label>
      ))}
      {tags.length > MOST_TAGS && (
        <Button look="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? "Fewer tags" : `All ${tags.length} tags`}
        </Button>
      )}
    </fieldset>
  );
}

function Card({ recipe }: { recipe: Recipe }) {
  const { id, name, summary, description, category, visibility } = recipe;
  return (
    <li className={styles.card}>
      {visibility !== "private" && <Picture name={`recipe-${id}`} />}
      <p className={styles.category}>
        {category}
        {visibility === "private" && <span className={styles.yours}>Yours</span>}
      </p>
      <h2>
        <Link href={`/recipes?recipe=${encodeURIComponent(id)}`}>
          <bdi>{name}</bdi>
        </Link>
      </h2>
      <p className={styles.summary} dir="auto">
        {summary ?? description}
      </p>
      <Ports recipe={recipe} />
      <Terms recipe={recipe} />
    </li>
  );
}

const NothingFound = ({ reset }: { reset: () => void }) => (
  <Empty title="No Recipe matches">
    <Button onClick={reset}>Show all Recipes</Button>
  </Empty>
);

const NoWorkflows = () => (
  <Empty title="No workflows of yours yet">
    <p className={parts.text}>
      On a canvas, select a Section with its inputs and results, open <em>Recipes</em>, and make a Recipe from it. It appears here, and only your account sees it.
    </p>
    <Link className={`${parts.button} ${parts.plain}`} href="/">
      Go to the canvases
    </Link>
  </Empty>
);
