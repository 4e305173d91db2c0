/** Opens the event stream of some canvases. */
export function openEvents(canvases: string[], signal: AbortSignal): Promise<Response> {
  const query = new URLSearchParams(canvases.map((canvas) => ["canvas", canvas]));
  const headers = { Accept: "text/event-stream" };
  return fetch(`/console/api/canvas-agent/v1/events?${query}`, { headers, signal, cache: "no-store" });
}
