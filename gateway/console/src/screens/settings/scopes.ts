/** What tokens may do: scopes, what they need, and common choices. */
import type { Scope } from "../../person.ts";

interface Rule {
  /** What a token with the scope may do. */
  grants: string;
  needs: readonly Scope[];
}

/** In the order of the service. */
export const SCOPES: Record<Scope, Rule> = {
  "canvas:read": { grants: "Read canvases, reviews, renders, Recipes and Actions", needs: [] },
  "canvas:write": { grants: "Change canvases, make new ones, run Actions", needs: ["canvas:read"] },
  "asset:read": { grants: "List and download images", needs: [] },
  "element:read": { grants: "Read Elements and collections", needs: [] },
  "element:write": { grants: "Create, revise and organize Elements", needs: ["element:read"] },
  "image:generate": { grants: "Upload and generate images, run Recipes. Spends credit", needs: ["canvas:read", "canvas:write", "asset:read"] },
  "video:generate": { grants: "Make videos. Spends credit", needs: ["canvas:read", "asset:read"] },
  "job:manage": { grants: "Follow and cancel runs, download videos", needs: [] },
};

export const ALL_SCOPES = Object.keys(SCOPES) as Scope[];

/** The chosen scopes with all that they need, in the order of the service. */
export function withNeeded(chosen: Iterable<Scope>): Scope[] {
  const found = new Set(chosen);
  // The needs of a scope have no further needs beyond those that it names itself.
  for (const scope of chosen) for (const needed of SCOPES[scope].needs) found.add(needed);
  return ALL_SCOPES.filter((scope) => found.has(scope));
}

/** The chosen scopes that need `scope`. */
export const neededBy = (scope: Scope, chosen: Iterable<Scope>): Scope[] => [...chosen].filter((one) => SCOPES[one].needs.includes(scope));

export interface Preset {
  name: string;
  scopes: readonly Scope[];
}

export const PRESETS: readonly Preset[] = [
  { name: "Read only", scopes: ["canvas:read", "asset:read", "element:read"] },
  { name: "Edit canvases", scopes: ["canvas:read", "canvas:write", "asset:read", "element:read", "job:manage"] },
  {
    name: "Edit and generate",
    scopes: ["canvas:read", "canvas:write", "asset:read", "element:read", "image:generate", "video:generate", "job:manage"],
  },
  { name: "Everything", scopes: ALL_SCOPES },
];

/** The preset with exactly these scopes. */
export const presetOf = (scopes: readonly Scope[]): Preset | undefined =>
  PRESETS.find((preset) => preset.scopes.length === scopes.length && preset.scopes.every((scope) => scopes.includes(scope)));
