/** Choices that are on until a person switches them off. They are kept in this browser. */
import { useSyncExternalStore } from "react";

/** The switches of pointers, with their names in the account menu. */
export const POINTER_SWITCHES = [
  ["canvas.pointer", "Show my pointer"],
  ["canvas.pointers", "Show pointers of others"],
] as const;

export type Switch = (typeof POINTER_SWITCHES)[number][0];

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Another tab may change it.
  addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("storage", listener);
  };
}

export function setSwitch(name: Switch, isOn: boolean): void {
  if (isOn) localStorage.removeItem(name);
  else localStorage.setItem(name, "off");
  for (const listener of listeners) listener();
}

export const useSwitch = (name: Switch): boolean => useSyncExternalStore(subscribe, () => localStorage.getItem(name) !== "off");
