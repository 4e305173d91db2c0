/** What people point at on a canvas: sent to the service, and told by it. It knows no React. */
import { Problem } from "./errors.ts";
import type { Pointer, PointerState } from "./stream.ts";

/** The least time between two requests while something moves, and otherwise, in milliseconds. */
const MOVING = 125;
const RESTING = 500;
/** The service shows a pointer for 10 s. After this long, the same one is sent again when the person does something. */
const REFRESH = 5000;
/** The pause after a request that failed, but for one that came too early. */
const PAUSE = 5000;
/** The rate is halved at most this many times, and one of them is taken back after this long without a refusal. */
const MOST_HALVED = 4;
const RECOVERY = 60_000;
/** The limits of the service. */
const MOST_BYTES = 2048;
const MOST_SELECTED = 32;
const FARTHEST = 10_000_000;

const number = (value: number) => Math.min(Math.max(Math.round(value * 10) / 10, -FARTHEST), FARTHEST);

/** A pointer as it is sent: within the limits of the service, and not finer than anybody sees. */
export function bodyOf({ at, selection, moving, view, editing }: PointerState): string {
  const selected = selection?.slice(0, MOST_SELECTED) ?? [];
  const body = () =>
    JSON.stringify({
      ...(at && { at: at.map(number) }),
      ...(selected.length > 0 && { selection: selected }),
      ...(moving && { moving: moving.map(number) }),
      ...(view && { view: [number(view[0]), number(view[1]), ...view.slice(2).map((side) => Math.max(number(side), 0.1))] }),
      ...(editing !== undefined && { editing }),
    });
  while (selected.length > 0 && body().length > MOST_BYTES) selected.pop();
  return body();
}

const NOTHING = bodyOf({});
const movementOf = ({ at, moving, view }: PointerState) => bodyOf({ ...(at && { at }), ...(moving && { moving }), ...(view && { view }) });

/**
 * Sends the pointer of this page, while it is on: only what has changed, at most 8 times a second, and not before the last request was
 * answered, so that a slow network thins it out by itself.
 */
export class PointerSender {
  #post: (body: string) => Promise<unknown>;
  #shown: PointerState = {};
  #sent = NOTHING;
  #sentMovement = NOTHING;
  #sentAt = Number.NEGATIVE_INFINITY;
  #notBefore = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBusy = false;
  #isOn = false;
  #halved = 0;
  #halvedAt = 0;

  constructor(post: (body: string) => Promise<unknown>) {
    this.#post = post;
  }

  /** The person did something, and this is what the page shows now. */
  show(state: PointerState): void {
    this.#shown = state;
    this.#plan();
  }

  /** Begins to send, or ends. */
  turn(isOn: boolean): void {
    if (isOn === this.#isOn) return;
    this.#isOn = isOn;
    if (isOn) this.announce();
    else clearTimeout(this.#timer);
  }

  /** Somebody has come who knows nothing of this pointer. */
  announce(): void {
    this.#sent = NOTHING;
    this.#plan();
  }

  #plan(): void {
    clearTimeout(this.#timer);
    if (!this.#isOn || this.#isBusy) return;
    const body = bodyOf(this.#shown);
    const isSame = body === this.#sent;
    if (isSame && (body === NOTHING || Date.now() - this.#sentAt < REFRESH)) return;
    const pace = (movementOf(this.#shown) === this.#sentMovement ? RESTING : MOVING) * 2 ** this.#halved;
    const due = Math.max(this.#sentAt + pace, this.#notBefore);
    this.#timer = setTimeout(() => void this.#send(), Math.max(due - Date.now(), 0));
  }

  async #send(): Promise<void> {
    const body = bodyOf(this.#shown);
    this.#sent = body;
    this.#sentMovement = movementOf(this.#shown);
    this.#sentAt = Date.now();
    this.#isBusy = true;
    try {
      await this.#post(body);
      if (this.#halved > 0 && Date.now() - this.#halvedAt >= RECOVERY) {
        this.#halved -= 1;
        this.#halvedAt = Date.now();
      }
    } catch (error) {
      const now = Date.now();
      if (error instanceof Problem && error.status === 429) {
        this.#halved = Math.min(this.#halved + 1, MOST_HALVED);
        this.#halvedAt = now;
        this.#notBefore = now + (error.retryAfter ?? 1) * 1000;
        // The service does not have it.
        this.#sent = NOTHING;
      } else {
        this.#notBefore = now + PAUSE;
      }
    }
    this.#isBusy = false;
    this.#plan();
  }
}

/** Eight colors, on each of which white letters have a contrast of at least 4.5 : 1. */
export const COLORS = ["#1d4ed8", "#b91c1c", "#047857", "#7e22ce", "#b45309", "#be185d", "#0e7490", "#4d7c0f"] as const;

/** The color of a participant: the same for everybody on a canvas. */
export const colorOf = (id: string): string => COLORS[[...id].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 4093, 7) % COLORS.length] ?? COLORS[0];

/** The pointers of others on a canvas, and whom the view follows. */
export class Peers {
  #pointers = new Map<string, Pointer>();
  /** Where people looked last, also those who have done nothing since. */
  #views = new Map<string, PointerState["view"]>();
  #list: readonly Pointer[] = [];
  #followed: string | undefined;
  #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly getList = (): readonly Pointer[] => this.#list;

  /** The id of the participant whom the view follows. */
  readonly getFollowed = (): string | undefined => this.#followed;

  /** The part of the plane that a participant looked at last. */
  viewOf(id: string | undefined): PointerState["view"] {
    return id === undefined ? undefined : this.#views.get(id);
  }

  /** The service has told these. */
  told(who: Pointer[]): void {
    for (const pointer of who) {
      const { id, label: _, surface: __, ...state } = pointer;
      // The same one stays the same: nothing is moved for it.
      if (state.view && String(state.view) !== String(this.#views.get(id))) this.#views.set(id, state.view);
      if (Object.keys(state).length === 0) this.#pointers.delete(id);
      else this.#pointers.set(id, pointer);
    }
    this.#changed();
  }

  /** Nothing is known any more, until it is told again. */
  forget(): void {
    this.#pointers.clear();
    this.#changed();
  }

  follow(id: string | undefined): void {
    if (id === this.#followed) return;
    this.#followed = id;
    this.#changed();
  }

  #changed(): void {
    this.#list = [...this.#pointers.values()];
    for (const listener of this.#listeners) listener();
  }
}
