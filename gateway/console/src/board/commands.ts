/** What can be done from the keyboard, the tools and the palette, whatever is selected. What is done with the selection: `bar.ts`. */
import { api } from "../api.ts";
import type { Board } from "./board.ts";
import type { Kind } from "./gestures.ts";
import { openPrompt } from "./prompting.ts";
import { hasSlides } from "./slides.ts";
import { toggleSnapping } from "./snap.ts";
import { variantOf } from "./variants.ts";

/** How long a command waits for what it has to read, in milliseconds. */
const PATIENCE = 5000;

export interface Command {
  id: string;
  label: string;
  group: "Add" | "Edit" | "Select" | "View";
  /** Key combinations, as `combinationOf` writes them. The first is shown. */
  keys: string[];
  run: (board: Board) => void;
  /** Whether it is for those who may change the canvas, and not for all. */
  isChange?: true;
  /** Whether it makes sense now. */
  can?: (board: Board) => boolean;
}

const hasSelection = ({ selected }: Board): boolean => selected.length > 0;
const create = (kind: Kind) => (board: Board) => void board.create(kind);

export const CHOOSE_FILES = "canvas-choose-files";

export const COMMANDS: readonly Command[] = [
  { id: "text", label: "Add a text", group: "Add", keys: ["T"], isChange: true, run: create("text") },
  { id: "sticky", label: "Add a note", group: "Add", keys: ["N"], isChange: true, run: create("sticky") },
  { id: "image", label: "Add a place for an image", group: "Add", keys: ["I"], isChange: true, run: create("image") },
  { id: "video", label: "Add a place for a video", group: "Add", keys: ["V"], isChange: true, run: create("video") },
  { id: "section", label: "Add a Section around the selection", group: "Add", keys: ["S"], isChange: true, run: (board) => board.createSection() },
  { id: "upload", label: "Upload images", group: "Add", keys: ["U"], isChange: true, run: () => void dispatchEvent(new Event(CHOOSE_FILES)) },

  { id: "undo", label: "Undo", group: "Edit", keys: ["Mod+Z"], isChange: true, run: (board) => board.undo(), can: ({ engine }) => engine.getSnapshot().undo !== undefined },
  { id: "redo", label: "Redo", group: "Edit", keys: ["Mod+Shift+Z", "Mod+Y"], isChange: true, run: (board) => board.redo(), can: ({ engine }) => engine.getSnapshot().redo !== undefined },

  { id: "bar", label: "Bar of the selection", group: "Select", keys: ["Mod+.", "Alt+F10"], run: focusBar, can: (board) => hasSelection(board) || board.getUi().link !== undefined },
  { id: "menu", label: "Menu of the selection", group: "Select", keys: ["Shift+F10", "ContextMenu"], run: openMenu, can: hasSelection },

  { id: "select-all", label: "Select everything", group: "Select", keys: ["Mod+A"], run: (board) => board.selectAll() },
  { id: "toggle", label: "Add the focused one to the selection, or take it away", group: "Select", keys: ["Mod+ "], run: (board) => board.toggleFocused(), can: ({ surface }) => surface?.focused() !== undefined },
  { id: "select-variants", label: "Select all variants of the run", group: "Select", keys: ["Shift+M"], run: (board) => board.selectVariants(), can: ({ graph, selected }) => variantOf(graph, selected[0]?.id) !== undefined },
  { id: "escape", label: "End what is under way", group: "Select", keys: ["Escape"], run: (board) => board.escape() },
  { id: "left", label: "Move the selection, or the view, to the left", group: "Select", keys: ["ArrowLeft"], run: (board) => board.nudge({ x: -1, y: 0 }) },
  { id: "right", label: "… to the right", group: "Select", keys: ["ArrowRight"], run: (board) => board.nudge({ x: 1, y: 0 }) },
  { id: "up", label: "… up", group: "Select", keys: ["ArrowUp"], run: (board) => board.nudge({ x: 0, y: -1 }) },
  { id: "down", label: "… down", group: "Select", keys: ["ArrowDown"], run: (board) => board.nudge({ x: 0, y: 1 }) },
  { id: "far-left", label: "Further to the left", group: "Select", keys: ["Shift+ArrowLeft"], run: (board) => board.nudge({ x: -10, y: 0 }) },
  { id: "far-right", label: "Further to the right", group: "Select", keys: ["Shift+ArrowRight"], run: (board) => board.nudge({ x: 10, y: 0 }) },
  { id: "far-up", label: "Further up", group: "Select", keys: ["Shift+ArrowUp"], run: (board) => board.nudge({ x: 0, y: -10 }) },
  { id: "far-down", label: "Further down", group: "Select", keys: ["Shift+ArrowDown"], run: (board) => board.nudge({ x: 0, y: 10 }) },

  { id: "zoom-in", label: "Zoom in", group: "View", keys: ["+", "="], run: (board) => board.surface?.zoomBy(1.25) },
  { id: "zoom-out", label: "Zoom out", group: "View", keys: ["-"], run: (board) => board.surface?.zoomBy(0.8) },
  { id: "fit", label: "Show everything", group: "View", keys: ["0"], run: (board) => board.surface?.show() },
  { id: "full-size", label: "Full size", group: "View", keys: ["1"], run: (board) => board.surface?.zoomTo(1) },
  { id: "pixels", label: "One pixel of the picture to one of the screen", group: "View", keys: ["3"], run: (board) => void showPixels(board), can: ({ selected }) => selected.length === 1 && selected[0]?.asset !== undefined },
  { id: "filter", label: "Filter what is on the board", group: "View", keys: ["Shift+F"], run: (board) => board.set({ filter: board.getUi().filter ? undefined : {} }) },
  { id: "lines", label: "Hide or show connections", group: "View", keys: ["Shift+C"], run: (board) => board.toggleLines() },
  { id: "hand", label: "Hand tool: drag the view", group: "View", keys: ["H"], run: (board) => board.set({ tool: board.getUi().tool === "hand" ? "select" : "hand" }) },
  { id: "snap", label: "Snap to others while dragging: on or off", group: "View", keys: [], isChange: true, run: toggleSnap },
  { id: "inspect", label: "Details and Actions", group: "View", keys: ["P"], run: (board) => board.togglePanel("inspect") },
  { id: "recipes", label: "Run or make a Recipe", group: "View", keys: ["W"], isChange: true, run: (board) => board.togglePanel("recipes") },
  { id: "make", label: "Make images or a video", group: "Add", keys: ["G"], isChange: true, run: (board) => openPrompt(board) },
  { id: "assets", label: "Put one of your pictures on the board", group: "Add", keys: ["A"], isChange: true, run: (board) => board.togglePanel("assets") },
  { id: "runs", label: "Runs on this canvas", group: "View", keys: ["R"], isChange: true, run: (board) => board.togglePanel("runs") },
  { id: "outline", label: "Outline", group: "View", keys: ["O"], run: (board) => board.togglePanel("outline") },
  { id: "export", label: "Export", group: "View", keys: ["Shift+E"], run: openExport },
  { id: "present", label: "Present", group: "View", keys: ["Shift+P"], run: (board) => board.set({ dialog: "present" }), can: ({ graph }) => hasSlides(graph) },
  { id: "palette", label: "Find a command or a title", group: "View", keys: ["Mod+K"], run: (board) => board.set({ dialog: "palette" }) },
  { id: "keys", label: "Keyboard shortcuts", group: "View", keys: ["?"], run: (board) => board.set({ dialog: "keys" }) },
];

/** Whether a command can be run now. */
export const isPossible = ({ isChange, can }: Command, board: Board): boolean => (!isChange || board.canChange) && (can?.(board) ?? true);

/** Gives the keyboard to the bar of the selection. */
function focusBar(): void {
  document.querySelector<HTMLElement>("[data-bar] [tabindex='0']")?.focus();
}

function toggleSnap(board: Board): void {
  board.notify(toggleSnapping() ? "What is dragged snaps to others." : "What is dragged no longer snaps to others.");
}

function openMenu(board: Board): void {
  const [node] = board.selected;
  if (node) board.set({ menu: { kind: "selection", at: board.surface?.toScreen(node.position) ?? { x: 0, y: 0 } } });
}

/** The menu of what can be taken out: of the selection, or of the board. */
export function openExport(board: Board): void {
  const { left = innerWidth / 2, bottom = innerHeight / 3 } = document.querySelector("[data-export]")?.getBoundingClientRect() ?? {};
  board.set({ menu: { kind: "export", at: { x: left, y: bottom + 8 } } });
}

async function showPixels(board: Board): Promise<void> {
  const [node] = board.selected;
  if (node?.asset === undefined) return;
  const asset = await api.asset(node.asset, AbortSignal.timeout(PATIENCE)).catch(() => undefined);
  if (asset) board.surface?.showPixels(node.id, asset.width);
  else board.notify("The size of the image cannot be read now.");
}
