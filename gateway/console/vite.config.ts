import { basename } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

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

const NO_COLORS = "\0no-colors";

/** React Flow without what nothing here uses. */
function trimmed(code: string, id: string): string | undefined {
  if (!id.includes("/@xyflow/react/dist/")) return undefined;
  // The styles of its own controls and map.
  if (id.endsWith(".css")) return code.replaceAll(/^\.react-flow__(?:controls|minimap)[^{}]*\{[^}]*\}$/gm, "").replaceAll(/^ *--xy-(?:controls|minimap)[^;]*;$/gm, "");
  // It names its components for tools of developers, so each of them would count as used.
  return code.replaceAll(/^\w+\.displayName = .*;$/gm, "").replaceAll(/= (memo|forwardRef)\(/g, "= /* @__PURE__ */ $1(");
}

/** Leaves out what nothing here uses of React Flow and of what it depends on, and what a bundler cannot know to be unused. */
const unused: Plugin = {
  name: "unused",
  enforce: "pre",
  apply: "build",
  // Transitions ask whether they are of colors. Here they are of the view of a board alone, which is three numbers.
  resolveId: (id) => (id === "d3-color" ? NO_COLORS : undefined),
  load: (id) => (id === NO_COLORS ? "export function color() { return null; } export { color as rgb, color as hsl, color as lab, color as hcl, color as cubehelix };" : undefined),
  transform: trimmed,
};

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
      // Few files: each takes the browser a millisecond before the page is there. What only some screens have in common is one of them.
      output: { codeSplitting: { groups: [{ name: "early", test: /(prefetch|early)\.ts$/ }, { name: "app", tags: ["$initial"] }, { name: "shared", minShareCount: 2 }] } },
    },
  },
  worker: { format: "es" },
  server: { proxy: { "/console": gateway, "/docs": gateway } },
});
