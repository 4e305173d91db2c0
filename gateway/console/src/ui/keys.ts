/** Key presses, and how keyboards name them. */
export interface Press {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
  code?: string;
}

/** A key press as commands name it. A sign that needs Shift on some keyboard is named without it. */
export function combinationOf({ key: sign, ctrlKey, metaKey, altKey, shiftKey, code = "" }: Press): string {
  // With Alt, keys of letters write other signs on many keyboards.
  const key = altKey && code.startsWith("Key") ? code.slice("Key".length) : sign;
  const isSign = key.length === 1 && key.toLowerCase() === key.toUpperCase();
  const name = key.length === 1 ? key.toUpperCase() : key;
  return [(ctrlKey || metaKey) && "Mod", altKey && "Alt", shiftKey && !isSign && "Shift", name].filter(Boolean).join("+");
}

/** Whether a dialog has the keyboard, also after a click on its text. */
export const isDialogOpen = (): boolean => document.querySelector("dialog[open]") !== null;

/** Whether a menu has the keyboard, also while that is on the button that has opened it. */
export const isMenuOpen = (): boolean => document.querySelector(":popover-open") !== null;

const isMac = typeof navigator === "object" && navigator.platform.startsWith("Mac");
const NAMES: Record<string, string> = { Mod: isMac ? "⌘" : "Ctrl", Shift: "⇧", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Delete: "Del", Escape: "Esc", " ": "Space", ContextMenu: "Menu", "-": "−" };

/** The parts of a combination as keyboards name them. */
export const keyNames = (combination: string): string[] => combination.split("+").map((part) => NAMES[part] ?? (part || "+")).filter((part, index, all) => !(part === "+" && all[index - 1] === "+"));
