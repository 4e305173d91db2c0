/**
 * Asks for what the page of this address needs before the application has been fetched and started: the canvas, and who is signed in. It is
 * only done in a browser in which somebody was signed in at last; that is a hint, and no credential.
 */
const HINT = "canvas.signed-in";
/** After this long without an answer, a request counts as lost, in milliseconds. */
const PATIENCE = 30_000;

const answers = new Map<string, Promise<Response>>();

/**
 * Fetches something large, and parses it as soon as it is there. It goes through a blob, which the browser fills outside of this thread:
 * that takes less time than to read the response, and the page is drawn meanwhile.
 */
export async function fetchLarge(request: Request | string, init?: RequestInit): Promise<Response> {
  const response = await fetch(request, init);
  if (!response.ok) return response;
  const value = response.blob().then(async (blob) => JSON.parse(await blob.text()) as unknown);
  value.catch(() => {});
  return Object.assign(response, { json: () => value });
}

function ask(path: string, get: typeof fetchLarge = fetch): void {
  const answer = get(path, { signal: AbortSignal.timeout(PATIENCE) });
  answers.set(path, answer);
  // It is asked for again.
  answer.catch(() => answers.delete(path));
}

/** Whether the page will probably show a board. */
export let isBoardLikely = false;

export function prefetch(page: string): void {
  if (localStorage.getItem(HINT) === null) return;
  const [, owner, id] = /^\/c\/([\w-]+)\/([\w-]+)$/.exec(page) ?? [];
  isBoardLikely = owner !== undefined;
  if (isBoardLikely) ask(`/console/api/canvas-agent/v1/canvases/${encodeURIComponent(`canvas:${owner}:${id}`)}`, fetchLarge);
  ask("/console/session");
}

let isExpired = false;
/** Whether a session has ended that nobody has signed out of in this browser. */
export const hasExpired = (): boolean => isExpired;

export function remember(isSignedIn: boolean): void {
  isExpired &&= !isSignedIn;
  if (isSignedIn) localStorage.setItem(HINT, "yes");
  else localStorage.removeItem(HINT);
}

/** The service knows no session of this browser. A sign-out, in any tab, has taken the hint away before. */
export function expire(): void {
  isExpired ||= localStorage.getItem(HINT) !== null;
  remember(false);
}

/** Forgets the answers: they were for who was signed in before. */
export function forget(): void {
  answers.clear();
}

/** The answer to a request that was made ahead, once. */
export function takePrefetched({ method, url }: Request): Promise<Response> | undefined {
  const path = new URL(url).pathname;
  const answer = method === "GET" ? answers.get(path) : undefined;
  if (answer) answers.delete(path);
  return answer;
}
