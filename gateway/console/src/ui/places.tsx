/** The palette and the list of keys of the screens beside the board: they lead to screens, settings and canvases. */
import { useEffect, useEffectEvent, useState } from "react";
import { useLocation } from "wouter";
import { canvasPath } from "../address.ts";
import { useCanvases } from "../library/canvases.ts";
import { useSession } from "../session.ts";
import { combinationOf, isDialogOpen } from "./keys.ts";
import { type Entry, EntryKind, KeyDialog, type KeyGroup, Keys, PaletteDialog } from "./palette.tsx";

export const SCREENS = [
  ["/", "Canvases"],
  ["/runs", "Queue"],
  ["/recipes", "Recipes"],
  ["/elements", "Elements"],
  ["/assets", "Pictures"],
  ["/settings", "Settings"],
] as const;

const SETTINGS = [
  ["/settings/tokens", "Tokens"],
  ["/settings/connections", "Connections"],
  ["/settings/sessions", "Sessions"],
  ["/settings/sharing", "Sharing"],
  ["/settings/webhooks", "Webhooks"],
  ["/settings/credit", "Credit"],
  ["/settings/storage", "Storage"],
] as const;

const KEYS: KeyGroup[] = [
  {
    title: "Everywhere",
    rows: [
      { what: "Find a screen or a canvas", keys: ["Mod+K"] },
      { what: "Keyboard shortcuts", keys: ["?"] },
      { what: "Close what is open", keys: ["Escape"] },
    ],
  },
  {
    title: "In the palette",
    rows: [
      { what: "Choose", keys: ["ArrowUp", "ArrowDown"] },
      { what: "Open", keys: ["Enter"] },
    ],
  },
  { title: "On a canvas", rows: [{ what: "Keys of the board", how: "open it and press ?" }] },
];

export type PlacesDialog = "palette" | "keys";

/** Which dialog is open, and what opens one. Keys open it as well, unless `isOff`: the board has its own. */
export function usePlaces(isOff: boolean): [PlacesDialog | undefined, (dialog: PlacesDialog | undefined) => void] {
  const [dialog, open] = useState<PlacesDialog>();
  const type = useEffectEvent((event: KeyboardEvent) => {
    const combination = combinationOf(event);
    const isTyping = (event.target as HTMLElement).matches("input, textarea, select, video, [contenteditable]");
    const wanted = combination === "Mod+K" ? "palette" : combination === "?" && !isTyping ? "keys" : undefined;
    if (isOff || event.defaultPrevented || wanted === undefined || isDialogOpen()) return;
    event.preventDefault();
    open(wanted);
  });
  useEffect(() => {
    const stop = new AbortController();
    addEventListener("keydown", (event) => type(event), { signal: stop.signal });
    return () => stop.abort();
  }, []);
  return [dialog, open];
}

export function Places({ dialog, open }: { dialog: PlacesDialog; open: (dialog: PlacesDialog | undefined) => void }) {
  const close = () => open(undefined);
  return dialog === "keys" ? <KeyDialog groups={KEYS} close={close} /> : <PlacePalette close={close} showKeys={() => open("keys")} />;
}

/** How many canvases are listed before anything is typed. */
const MOST_RECENT = 8;
const MOST_FOUND = 40;

function PlacePalette({ close, showKeys }: { close: () => void; showKeys: () => void }) {
  const [, navigate] = useLocation();
  const { session } = useSession();
  const canvases = useCanvases(() => true) ?? [];

  const entry = (path: string, label: string, kind: string): Entry => ({
    key: path,
    label,
    hint: <EntryKind>{kind}</EntryKind>,
    run: () => {
      close();
      navigate(path);
    },
  });

  function entriesOf(query: string): Entry[] {
    const wanted = query.trim().toLocaleLowerCase();
    const found = [
      ...SCREENS.map(([path, label]) => entry(path, label, "screen")),
      // A session of a token has no settings.
      ...(session.kind === "full" && wanted !== "" ? SETTINGS.map(([path, label]) => entry(path, label, "settings")) : []),
      { key: "keys", label: "Keyboard shortcuts", hint: <Keys combination="?" />, run: showKeys },
      ...canvases.slice(0, wanted === "" ? MOST_RECENT : undefined).map((canvas) => entry(canvasPath(canvas), canvas.title || "Untitled", "canvas")),
    ];
    return found.filter(({ label }) => label.toLocaleLowerCase().includes(wanted)).slice(0, MOST_FOUND);
  }
  return <PaletteDialog label="Find a screen or a canvas" field="Screen or canvas" entriesOf={entriesOf} close={close} />;
}
