import { MutationCache, type Query, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./early.ts";
import { expire, isBoardLikely } from "./prefetch.ts";
import { App } from "./app.tsx";
import { Problem } from "./errors.ts";
import { onReached, reached } from "./reached.ts";
import { loadEditor } from "./screens/canvas.tsx";
import "./ui/base.css";
import { followKeyboard } from "./ui/screen.ts";
import { applyTheme } from "./ui/theme.ts";
import { countUploads, resumeUploads } from "./uploads.ts";

function onError(error: Error, meta: Record<string, unknown> | undefined) {
  // The session ended. The application shows the sign-in page, which leads back here. A link or token that is refused ends no session.
  if (!(error instanceof Problem && error.status === 401) || meta?.["isOfSession"] === false) return;
  expire();
  queries.setQueryData(["session"], null);
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: (error, { meta }) => onError(error, meta) }),
  mutationCache: new MutationCache({ onError: (error, _variables, _result, { meta }) => onError(error, meta) }),
  defaultOptions: {
    // A mutation that waits for a network would be sent when nobody expects it any more.
    mutations: { networkMode: "always" },
    queries: {
      // Requests to a service on this machine work without a network.
      networkMode: "always",
      staleTime: 10_000,
      retry: (failures, error) => failures < 4 && error instanceof Problem && error.isTemporary,
      retryDelay: (failures, error) =>
        error instanceof Problem && error.retryAfter !== undefined ? error.retryAfter * 1000 : Math.min(500 * 2 ** failures, 8000),
    },
  },
});

const isWaiting = ({ state: { error } }: Query): boolean => error instanceof Problem && error.isTemporary;

// What could not be read is read, and files are sent, without a click.
addEventListener("online", reached);
onReached(() => {
  void queries.refetchQueries({ type: "active", predicate: isWaiting }, { cancelRefetch: false });
  resumeUploads();
});

// Unlike changes, files that are not uploaded are not kept in the browser.
addEventListener("beforeunload", (event) => countUploads() > 0 && event.preventDefault());

applyTheme();
followKeyboard();
if (isBoardLikely) {
  loadEditor().catch(() => {});
  import("./sync/storage.ts").then(({ prepare }) => prepare(), () => {});
}

// A file that is dropped where nothing takes it would be opened in place of this page.
for (const type of ["dragover", "drop"] as const) {
  addEventListener(type, (event) => {
    if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  });
}

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no root");
// What could not be fetched is shown, and is no error of this program.
const onCaughtError = (error: unknown) => error instanceof Problem || console.error(error);
createRoot(root, { onCaughtError }).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
