import { RUNS } from "./stream.ts";

/** Opens the event stream of some canvases with their pointers, and of the runs of `account` if they are among the topics. */
export function openEvents(account: string, topics: string[], signal: AbortSignal): Promise<Response> {
  const query = new URLSearchParams([...topics.map((topic) => (topic === RUNS ? ["runs", "mine"] : ["canvas", topic])), ["pointers", "true"]]);
  const headers = { Accept: "text/event-stream", "X-Canvas-Account": account };
  return fetch(`/console/api/canvas-agent/v1/events?${query}`, { headers, signal, cache: "no-store" });
}
