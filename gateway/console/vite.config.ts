import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The gateway that `npm run dev` forwards to. Its CANVAS_PUBLIC_URL has to be the address of the development server. */
const gateway = process.env.CANVAS_BASE_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2024",
    assetsDir: "static",
    // The content security policy permits no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: "licenses.txt" },
  },
  worker: { format: "es" },
  server: { proxy: { "/console": gateway, "/docs": gateway } },
});
