import { basename, join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type Rolldown } from "vite";

/** The gateway that `npm run dev` forwards to. Its CANVAS_PUBLIC_URL has to be the address of the development server. */
const gateway = process.env.CANVAS_BASE_URL ?? "http://127.0.0.1:8080";

/** Puts the script `early` into the page. It waits for nothing, and so runs before the application has been fetched and compiled. */
const early: Plugin = {
  name: "early",
  transformIndexHtml: {
    order: "post",
    handler(_, { bundle = {} }) {
      const chunk = Object.values(bundle).find(({ name }) => name === "early");
      return chunk && [{ tag: "script", attrs: { type: "module", async: true, crossorigin: true, src: `/${chunk.fileName}` }, injectTo: "head" }];
    },
  },
};

/** Animated changes of the view are those of camera.ts: of these libraries, nothing else of what React Flow uses is ever called. */
const STILL: Record<string, string> = {
  "d3-transition": 'import { selection } from "d3-selection"; selection.prototype.interrupt = function () { return this; }; export function interrupt() {}',
  "d3-interpolate": "export function interpolate() {} export { interpolate as interpolateZoom };",
};

/** React Flow without what nothing here uses. */
function trimmed(code: string, id: string): string | undefined {
  if (!id.includes("/@xyflow/react/dist/")) return undefined;
  // The styles of its own controls and map.
  if (id.endsWith(".css")) return code.replaceAll(/^\.react-flow__(?:controls|minimap)[^{}]*\{[^}]*\}$/gm, "").replaceAll(/^ *--xy-(?:controls|minimap)[^;]*;$/gm, "");
  // It names its components for tools of developers, so each of them would count as used. So would those of its own that can be nodes and edges.
  return code
    .replaceAll(/^\w+\.displayName = .*;$/gm, "")
    .replaceAll(/^const builtin(Node|Edge)Types = \{[^}]*\};$/gm, "const builtin$1Types = {};")
    .replaceAll(/= (memo|forwardRef|create\w+Edge)\(/g, "= /* @__PURE__ */ $1(");
}

/** Leaves out what nothing here uses of React Flow and of what it depends on, and what a bundler cannot know to be unused. */
const unused: Plugin = {
  name: "unused",
  enforce: "pre",
  apply: "build",
  resolveId: (id) => (id in STILL ? `\0${id}` : undefined),
  load: (id) => (id.startsWith("\0") ? STILL[id.slice(1)] : undefined),
  transform: trimmed,
};

/** The modules that are loaded with these, or also those that are loaded when they are first used. */
function reached(roots: string[], modules: (id: string) => Rolldown.ModuleInfo | null, isEver: boolean): Set<string> {
  const found = new Set<string>();
  for (const left = roots.map((root) => join(import.meta.dirname, "src", root)); left.length > 0; ) {
    const id = left.pop() as string;
    if (found.has(id)) continue;
    found.add(id);
    const module = modules(id);
    left.push(...(module?.importedIds ?? []), ...((isEver && module?.dynamicallyImportedIds) || []));
  }
  return found;
}

let parts: { board: Set<string>; tools: Set<string> } | undefined;

/** Which of the common files a module is in. */
function commonPart(id: string, graph: { getModuleInfo: (id: string) => Rolldown.ModuleInfo | null }): string {
  const modules = (id: string) => graph.getModuleInfo(id);
  parts ??= { board: reached(["board/editor.tsx"], modules, false), tools: reached(["board/editor.tsx", "screens/share-dialog.tsx"], modules, true) };
  return parts.board.has(id) ? "shared" : parts.tools.has(id) ? "tools" : "pages";
}

/** What several screens have in common: what a board has from the beginning, what is opened on it, and the rest. A file takes what its modules need, too. */
const common = ["shared", "tools", "pages"].map((part) => ({
  name: (id: string, graph: Parameters<typeof commonPart>[1]) => (commonPart(id, graph) === part ? part : null),
  debugName: part,
  minShareCount: 2,
}));

export default defineConfig({
  plugins: [react(), early, unused],
  // Short, and readable in a browser: `look-frame` is the class `frame` of `look.module.css`. rules.ts keeps the names of the files different.
  css: { modules: { generateScopedName: (name, file) => `${basename(file).split(".")[0]}-${name}` } },
  build: {
    target: "es2024",
    assetsDir: "static",
    // The content security policy permits no data: URLs.
    assetsInlineLimit: 0,
    // Of a part that could not be fetched, the bundler would not ask for the style sheet again.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: "licenses.txt" },
    rolldownOptions: {
      input: { index: "index.html", early: "src/early.ts" },
      // Few files: each takes the browser a millisecond before the page is there.
      output: { codeSplitting: { groups: [{ name: "early", test: /(prefetch|early)\.ts$/ }, { name: "app", tags: ["$initial"] }, ...common] } },
    },
  },
  worker: { format: "es" },
  server: { proxy: { "/console": gateway, "/docs": gateway } },
});
