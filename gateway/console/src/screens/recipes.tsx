/** The gallery of Recipes: those of the service and the account's own workflows. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { count } from "../format.ts";
import { type Recipe, recipes as calls, type Visibility } from "../recipes/calls.ts";
import { Ports, Terms } from "../recipes/parts.tsx";
import styles from "../recipes/recipes.module.css";
import { useAddress, useNextPages, useSettled, useTitle } from "../ui/hooks.ts";
import { Button, Empty, Failure, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Filters, Search } from "../ui/search.tsx";
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
  const list = useInfiniteQuery({
    queryKey: ["recipes", visibility, q],
    queryFn: ({ pageParam, signal }) => calls.list(q, visibility, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.page.nextCursor ?? undefined,
    placeholderData: keepPreviousData,
  });
  const found = list.data?.pages.flatMap(({ recipes }) => recipes);

  const setEnd = useNextPages(list);
  const { isFetching, fetchNextPage } = list;

  return (
    <Shell>
      <div className={page.page}>
        <div className={page.head}>
          <h1>Recipes</h1>
          <div className={page.tools}>
            <Search label="Search Recipes" maxLength={500} value={wanted} set={(value) => set("q", value)} />
            <Filters names={FILTERS} value={visibility} set={(name) => set("show", name === "all" ? "" : name)} />
          </div>
        </div>
        <p className="unseen" role="status">
          {found && !isFetching && q !== "" && `${count(found.length, "Recipe")} found`}
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
        {found?.length === 0 && (q === "" && visibility === "private" ? <NoWorkflows /> : <NothingFound reset={reset} />)}
        {list.isFetchNextPageError && <Failure title="The rest cannot be loaded" error={list.error} retry={fetchNextPage} />}
        <div ref={setEnd} className={page.end} role="status">
          {list.isFetchingNextPage && "Loading more…"}
        </div>
      </div>
    </Shell>
  );
}

function Card({ recipe }: { recipe: Recipe }) {
  const { id, name, summary, description, category, visibility } = recipe;
  return (
    <li className={styles.card}>
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
