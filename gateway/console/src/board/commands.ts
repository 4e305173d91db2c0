/** Everything that can be done from the keyboard, the toolbar and the palette, in one list. */
import { isSection } from "../sync/graph.ts";
import { combinationOf, type Press } from "../ui/keys.ts";
import type { Board } from "./board.ts";
import type { Kind } from "./gestures.ts";
import { hasMarkable, toggleFavorite } from "./marks.ts";
import { openPrompt } from "./prompting.ts";

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
const hasOne = ({ selected }: Board): boolean => selected.length === 1;
const create = (kind: Kind) => (board: Board) => void board.create(kind, board.surface?.pointer());

export const CHOOSE_FILES = "canvas-choose-files";

export const COMMANDS: readonly Command[] = [
  { id: "text", label: "Add a text", group: "Add", keys: ["T"], isChange: true, run: create("text") },
  { id: "sticky", label: "Add a note", group: "Add", keys: ["N"], isChange: true, run: create("sticky") },
  { id: "image", label: "Add an image slot", group: "Add", keys: ["I"], isChange: true, run: create("image") },
  { id: "video", label: "Add a video slot", group: "Add", keys: ["V"], isChange: true, run: create("video") },
  { id: "section", label: "Add a Section around the selection", group: "Add", keys: ["S"], isChange: true, run: (board) => board.createSection() },
  { id: "upload", label: "Upload images", group: "Add", keys: ["U"], isChange: true, run: () => void dispatchEvent(new Event(CHOOSE_FILES)) },

  { id: "undo", label: "Undo", group: "Edit", keys: ["Mod+Z"], isChange: true, run: (board) => board.undo(), can: ({ engine }) => engine.getSnapshot().undo !== undefined },
  { id: "redo", label: "Redo", group: "Edit", keys: ["Mod+Shift+Z", "Mod+Y"], isChange: true, run: (board) => board.redo(), can: ({ engine }) => engine.getSnapshot().redo !== undefined },
  { id: "edit", label: "Edit the text", group: "Edit", keys: ["Enter"], isChange: true, run: (board) => board.edit(board.selected[0]?.id ?? ""), can: hasOne },
  { id: "rename", label: "Rename", group: "Edit", keys: ["F2"], isChange: true, run: (board) => board.edit(board.selected[0]?.id ?? "", "title"), can: hasOne },
  { id: "duplicate", label: "Duplicate", group: "Edit", keys: ["Mod+D"], isChange: true, run: (board) => board.duplicate(), can: hasSelection },
  { id: "connect", label: "Connect the two selected nodes", group: "Edit", keys: ["C"], isChange: true, run: connectSelected, can: ({ selected }) => selected.length === 2 },
  { id: "delete", label: "Delete", group: "Edit", keys: ["Delete", "Backspace"], isChange: true, run: (board) => board.delete(), can: (board) => hasSelection(board) || board.getUi().link !== undefined },

  { id: "favorite", label: "Mark as a favorite, or take that back", group: "Edit", keys: ["F"], isChange: true, run: toggleFavorite, can: hasMarkable },
  { id: "menu", label: "Menu of the selection", group: "Edit", keys: ["Shift+F10", "ContextMenu"], run: openMenu, can: hasSelection },

  { id: "select-all", label: "Select everything", group: "Select", keys: ["Mod+A"], run: (board) => board.selectAll() },
  { id: "toggle", label: "Add the focused node to the selection, or take it away", group: "Select", keys: ["Mod+ "], run: (board) => board.toggleFocused(), can: ({ surface }) => surface?.focused() !== undefined },
  { id: "select-members", label: "Select the members of the Section", group: "Select", keys: ["M"], run: selectMembers, can: ({ selected }) => selected.some(isSection) },
  { id: "escape", label: "End what is under way", group: "Select", keys: ["Escape"], run: (board) => board.escape() },
  { id: "left", label: "Move the selection, or the view, to the left", group: "Select", keys: ["ArrowLeft"], run: (board) => board.nudge({ x: -8, y: 0 }) },
  { id: "right", label: "… to the right", group: "Select", keys: ["ArrowRight"], run: (board) => board.nudge({ x: 8, y: 0 }) },
  { id: "up", label: "… up", group: "Select", keys: ["ArrowUp"], run: (board) => board.nudge({ x: 0, y: -8 }) },
  { id: "down", label: "… down", group: "Select", keys: ["ArrowDown"], run: (board) => board.nudge({ x: 0, y: 8 }) },
  { id: "far-left", label: "Far to the left", group: "Select", keys: ["Shift+ArrowLeft"], run: (board) => board.nudge({ x: -64, y: 0 }) },
  { id: "far-right", label: "Far to the right", group: "Select", keys: ["Shift+ArrowRight"], run: (board) => board.nudge({ x: 64, y: 0 }) },
  { id: "far-up", label: "Far up", group: "Select", keys: ["Shift+ArrowUp"], run: (board) => board.nudge({ x: 0, y: -64 }) },
  { id: "far-down", label: "Far down", group: "Select", keys: ["Shift+ArrowDown"], run: (board) => board.nudge({ x: 0, y: 64 }) },

  { id: "zoom-in", label: "Zoom in", group: "View", keys: ["+", "="], run: (board) => board.surface?.zoomBy(1.25) },
  { id: "zoom-out", label: "Zoom out", group: "View", keys: ["-"], run: (board) => board.surface?.zoomBy(0.8) },
  { id: "fit", label: "Show everything", group: "View", keys: ["0"], run: (board) => board.surface?.show() },
  { id: "fit-selection", label: "Show the selection", group: "View", keys: ["2"], run: (board) => board.surface?.show(board.getUi().selection), can: hasSelection },
  { id: "full-size", label: "Full size", group: "View", keys: ["1"], run: (board) => board.surface?.zoomTo(1) },
  { id: "hand", label: "Hand tool: drag the view", group: "View", keys: ["H"], run: (board) => board.set({ tool: board.getUi().tool === "hand" ? "select" : "hand" }) },
  { id: "inspect", label: "Properties and Actions", group: "View", keys: ["P"], run: (board) => board.togglePanel("inspect") },
  { id: "recipes", label: "Run or make a Recipe", group: "View", keys: ["W"], isChange: true, run: (board) => board.togglePanel("recipes") },
  { id: "make", label: "Make images or a video", group: "Add", keys: ["G"], isChange: true, run: (board) => openPrompt(board) },
  { id: "assets", label: "Put an image from your assets on the board", group: "Add", keys: ["A"], isChange: true, run: (board) => board.togglePanel("assets") },
  { id: "runs", label: "Runs on this canvas", group: "View", keys: ["R"], isChange: true, run: (board) => board.togglePanel("runs") },
  { id: "outline", label: "Outline", group: "View", keys: ["O"], run: (board) => board.togglePanel("outline") },
  { id: "palette", label: "Find a command or a node", group: "View", keys: ["Mod+K"], run: (board) => board.set({ dialog: "palette" }) },
  { id: "keys", label: "Keyboard shortcuts", group: "View", keys: ["?"], run: (board) => board.set({ dialog: "keys" }) },
];

const BY_KEY = new Map(COMMANDS.flatMap((command) => command.keys.map((key) => [key, command] as const)));

/** Whether a command can be run now. */
export const isPossible = ({ isChange, can }: Command, board: Board): boolean => (!isChange || board.canChange) && (can?.(board) ?? true);

/** The command of a key press that can be run now. */
export function commandOf(press: Press, board: Board): Command | undefined {
  const command = BY_KEY.get(combinationOf(press));
  return command && isPossible(command, board) ? command : undefined;
}

/** What the menu of the selection offers. */
export const SELECTION_COMMANDS = ["edit", "rename", "duplicate", "section", "connect", "inspect", "fit-selection", "delete"];

function openMenu(board: Board): void {
  const [node] = board.selected;
  if (node) board.set({ menu: { kind: "selection", at: board.surface?.toScreen(node.position) ?? { x: 0, y: 0 } } });
}

function connectSelected(board: Board): void {
  const [from, to] = board.selected;
  if (!from || !to) return;
  const x = innerWidth / 2;
  board.offer(from.id, to.id, { x, y: innerHeight / 3 });
}

function selectMembers(board: Board): void {
  const sections = new Set(board.selected.filter(isSection).map(({ id }) => id));
  board.select([...board.graph.nodes.values()].filter(({ metadata }) => sections.has(metadata.sectionId ?? "")).map(({ id }) => id));
}
