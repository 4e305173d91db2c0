/** Recipes beside the board: run on the selection, forked into a Section, and made from a selection. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { count, firstOf, priceOf } from "../format.ts";
import { type Recipe, recipes, RUN_SCOPES } from "../recipes/calls.ts";
import { type Filled, RunForm } from "../recipes/form.tsx";
import { Terms } from "../recipes/parts.tsx";
import { filled, holdsText, valueOf } from "../recipes/ports.ts";
import { RunProgress } from "../recipes/progress.tsx";
import { Picture } from "../samples/pictures.tsx";
import sheet from "../library/sheet.module.css";
import { useSession } from "../session.ts";
import { isSection, type Node } from "../sync/graph.ts";
import { useSettled } from "../ui/hooks.ts";
import { Button, Failure, Icon, Waiting } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import { newNode } from "./gestures.ts";
import { Search } from "../ui/search.tsx";
import panel from "./recipe-panel.module.css";
import { FIT, type Start, startInto, startOn } from "./runs.ts";
import { around, boxOf } from "./spatial.ts";
import { WorkflowForm } from "./workflow.tsx";

const GAP = 80;
const MOST_TEXTS = 200;

/** A Recipe to run, or an instance of one that is on the canvas. */
interface Chosen {
  id: string;
  version?: string | undefined;
  /** The id of the instance at the service. */
  instance?: string;
}

type View = { kind: "list" } | { kind: "recipe"; chosen: Chosen } | { kind: "run"; run: string; name: string; chosen: Chosen } | { kind: "make"; ids: string[] };

interface Props {
  board: Board;
  canvas: string;
  nodes: Node[];
  /** The revision at the service, once everything is saved. */
  revision: string | undefined;
}

export function Recipes({ board, canvas, nodes, revision }: Props) {
  const [view, setView] = useState<View>({ kind: "list" });
  const box = useRef<HTMLDivElement>(null);
  const { kind } = view;
  // The keyboard goes on in what is shown now.
  const shown = useRef(kind);
  useEffect(() => {
    if (shown.current !== kind) box.current?.focus();
    shown.current = kind;
  }, [kind]);

  return (
    <div ref={box} tabIndex={-1} className={panel.panel}>
      {kind !== "list" && (
        <Button look="quiet" className={panel.back} onClick={() => setView({ kind: "list" })}>
          <Icon name="back" size={16} />
          All Recipes
        </Button>
      )}
      {kind === "list" && <List board={board} nodes={nodes} open={setView} />}
      {view.kind === "recipe" && <Sheet key={JSON.stringify(view.chosen)} board={board} canvas={canvas} nodes={nodes} revision={revision} chosen={view.chosen} open={setView} />}
      {view.kind === "run" && (
        <>
          <h3 dir="auto">{view.name}</h3>
          <RunProgress key={view.run} run={view.run}>
            {(run) => (
              <>
                <Button onClick={board.showing(targetsOf(board, run.targets)).run}>Show on the canvas</Button>
                <Button look="quiet" onClick={() => setView({ kind: "recipe", chosen: view.chosen })}>
                  Back to the form
                </Button>
              </>
            )}
          </RunProgress>
        </>
      )}
      {view.kind === "make" && <WorkflowForm board={board} canvas={canvas} ids={view.ids} made={(chosen) => setView({ kind: "recipe", chosen })} />}
    </div>
  );
}

/** The nodes that receive the results of a run. */
const targetsOf = (board: Board, targets: string[]): string[] => targets.map((handle) => board.engine.local(handle.replace(/^node:/, ""))).filter((id) => board.graph.nodes.has(id));

/** The instance of a Recipe that a node belongs to. */
function instanceOf(board: Board, node: Node | undefined): Node | undefined {
  const { recipe } = node?.metadata ?? {};
  if (!recipe) return undefined;
  return recipe.role === "instance" ? node : board.graph.nodes.get(board.engine.local(recipe.instance ?? ""));
}

const isFull = (node: Node | undefined): boolean => node !== undefined && (node.asset !== undefined || holdsText(node));

/** The keys of the ports for which an instance holds a value: in the port's node, or in one that leads to it. */
function heldBy(board: Board, instance: Node | undefined): Set<string> {
  const { nodes, connections } = board.graph;
  const leading = new Set([...connections.values()].filter(({ fromNodeId }) => isFull(nodes.get(fromNodeId))).map(({ toNodeId }) => toNodeId));
  const full = (instance?.metadata.recipe?.inputs ?? []).filter(({ nodeId }) => {
    const id = board.engine.local(nodeId);
    return isFull(nodes.get(id)) || leading.has(id);
  });
  return new Set(full.map(({ key }) => key));
}

function List({ board, nodes, open }: { board: Board; nodes: Node[]; open: (view: View) => void }) {
  const [typed, setTyped] = useState("");
  const q = useSettled(typed.trim(), 250);
  const { data, error, refetch } = useQuery({
    queryKey: ["recipes", "panel", q],
    queryFn: ({ signal }) => recipes.list(q, "all", undefined, signal),
    placeholderData: keepPreviousData,
  });
  const instance = nodes.map((node) => instanceOf(board, node)).find((node) => node !== undefined);
  const { recipe, version, name } = instance?.metadata.recipe ?? {};
  return (
    <>
      {instance && recipe && (
        <button
          type="button"
          className={panel.instance}
          onClick={() => open({ kind: "recipe", chosen: { id: recipe.replace(/^recipe:/, ""), version, instance: board.engine.real(instance.id) } })}
        >
          <strong>
            Run the selected <bdi>{name ?? "Recipe"}</bdi>
          </strong>
          <span>With what it holds</span>
        </button>
      )}
      <Search isSmall label="Search Recipes" maxLength={500} value={typed} set={setTyped} />
      {error && !data && <Failure title="The Recipes cannot be loaded" error={error} retry={refetch} />}
      {!data && !error && <Waiting label="Loading the Recipes" />}
      {data && (
        <ul className={panel.list}>
          {data.recipes.map((one) => (
            <li key={one.handle}>
              <button type="button" className={panel.recipe} onClick={() => open({ kind: "recipe", chosen: { id: one.id } })}>
                {one.visibility === "private" ? <span className={panel.own} aria-hidden="true"><Icon name="recipe" size={18} /></span> : <Picture name={`recipe-${one.id}`} />}
                <strong>
                  <bdi>{one.name}</bdi>
                </strong>
                <span>
                  {count(one.inputs.length, "input")}, {count(one.outputs.length, "output")} · {priceOf(one.creditCost)}
                  {one.visibility === "private" && " · yours"}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {data?.recipes.length === 0 && <p className="hint">No Recipe matches.</p>}
      {data?.page.nextCursor && <p className="hint">There are more. Search to find them.</p>}
      <div className={panel.make}>
        <Button disabled={nodes.length === 0} onClick={() => open({ kind: "make", ids: nodes.map(({ id }) => id) })}>
          <Icon name="plus" size={16} />
          Make a Recipe from the selection
        </Button>
        {nodes.length === 0 && <p className="hint">Select a Section, or what goes in and comes out.</p>}
      </div>
    </>
  );
}

/** Where an instance goes, by a name that a select can hold. */
type Place = "" | "section" | `near:${string}` | `in:${string}`;

function placesOf(board: Board, [node]: Node[]): [Place, string][] {
  const home = node && (isSection(node) ? node : board.graph.nodes.get(node.metadata.sectionId ?? ""));
  return [
    ...(home ? [[`in:${home.id}`, `In the Section “${home.title}”`] as [Place, string]] : []),
    ...(node && !isSection(node) ? [[`near:${node.id}`, `Beside “${node.title || node.type}”`] as [Place, string]] : []),
    ["", "Beside everything else"],
    ["section", "In a new Section"],
  ];
}

/** Puts an instance of a Recipe on the canvas. A new Section is to the right of everything, where it can grow. */
async function putAt<T>(board: Board, name: string, place: Place, start: (common: Start & { near?: string; sectionId?: string }) => Promise<T>): Promise<T> {
  const { engine, graph } = board;
  if (place === "section") {
    const box = around([...graph.nodes.values()].map(boxOf)) ?? { x: -GAP, y: 0, width: 0, height: 0 };
    const section = newNode(graph, "section", board.newId(), { x: 0, y: 0 }, { title: firstOf(name, 160), position: { x: Math.round(box.x + box.width + GAP), y: Math.round(box.y) } });
    return startInto(board, `Add ${name}`, [section], [], (common, [sectionId = ""]) => start({ ...common, sectionId }));
  }
  const [kind, id = ""] = place.split(/:(.*)/s);
  const started = await startOn(board, (common) => {
    const handle = `node:${engine.real(id)}`;
    return start({ ...common, ...(kind === "near" && { near: handle }), ...(kind === "in" && { sectionId: handle }) });
  });
  await engine.refresh();
  return started;
}

interface SheetProps extends Props {
  chosen: Chosen;
  open: (view: View) => void;
}

function Sheet({ chosen, ...rest }: SheetProps) {
  const { data, error, refetch } = useQuery({ queryKey: ["recipe", chosen.id, chosen.version], queryFn: ({ signal }) => recipes.read(chosen.id, chosen.version, signal) });
  if (error && !data) return <Failure title="The Recipe cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the Recipe" />;
  return <RecipeSheet {...rest} chosen={chosen} recipe={data} />;
}

function RecipeSheet({ board, canvas, nodes, revision, chosen, open, recipe }: SheetProps & { recipe: Recipe }) {
  const { session } = useSession();
  const [wanted, setWanted] = useState<Place>();
  const { engine, graph } = board;
  const { instance } = chosen;
  const places = placesOf(board, nodes);
  const place = places.find(([name]) => name === wanted)?.[0] ?? places[0]?.[0] ?? "";
  const lacking = RUN_SCOPES.filter((scope) => !session.scopes.includes(scope));
  const texts = useMemo(
    () => [...graph.nodes.values()].filter(holdsText).slice(0, MOST_TEXTS).map((node) => valueOf(node, engine.real)),
    [engine, graph],
  );
  // The card of an instance describes it: it is no value for a port.
  const given = instance === undefined ? filled(recipe.inputs, nodes.filter(({ metadata }) => metadata.recipe?.role !== "instance"), engine.real) : {};

  async function run(body: Filled) {
    // A node that was new when it was chosen has another id by now.
    const inputs = Object.fromEntries(Object.entries(body.inputs ?? {}).map(([key, value]) => [key, value.startsWith("node:") ? `node:${engine.real(value.slice(5))}` : value]));
    const start = (common: Start) => recipes.run(recipe.id, { ...body, ...common, ...FIT, inputs, canvasId: canvas });
    const { handle, targets } = instance === undefined ? await putAt(board, recipe.name, place, start) : await startOn(board, start);
    await engine.refresh();
    // The service has placed them: nobody can say where before.
    board.bring(targetsOf(board, targets));
    open({ kind: "run", run: handle, name: recipe.name, chosen });
  }

  async function fork() {
    const { resolvedIds = {} } = await putAt(board, recipe.name, place, (common) => recipes.fork(recipe.id, { ...common, canvasId: canvas, version: recipe.version }));
    const { recipe: made = "" } = resolvedIds;
    board.select([engine.local(made)]);
    board.surface?.show(Object.values(resolvedIds).map(engine.local));
    open({ kind: "recipe", chosen: { id: recipe.id, version: recipe.version, instance: made } });
  }

  return (
    <>
      <div className={panel.intro}>
        <h3 dir="auto">{recipe.name}</h3>
        <p className="hint" dir="auto">
          {recipe.summary ?? recipe.description}
        </p>
        <Terms recipe={recipe} />
      </div>
      {instance !== undefined && <p className="hint">What is left empty comes from this instance, or from what is connected to it.</p>}
      <RunForm
        recipe={recipe}
        instance={instance}
        {...(instance !== undefined && { held: heldBy(board, graph.nodes.get(engine.local(instance))) })}
        canvas={canvas}
        revision={revision}
        given={given}
        texts={texts}
        run={run}
        {...(instance === undefined && { fork })}
        refusal={lacking.length > 0 ? `This session may not run Recipes: it lacks ${lacking.join(", ")}.` : undefined}
      >
        {instance === undefined && (
          <label className={sheet.field}>
            <span>Where the results go</span>
            <select value={place} onChange={({ target }) => setWanted(target.value as Place)}>
              {places.map(([name, label]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        )}
      </RunForm>
    </>
  );
}
