/** Passes notices to listeners. Notices before the first listener are kept for it. */
export class Notifier<Notice extends unknown[]> {
  #listeners = new Set<(...notice: Notice) => void>();
  #kept: Notice[] = [];

  readonly listen = (listener: (...notice: Notice) => void): (() => void) => {
    this.#listeners.add(listener);
    for (const notice of this.#kept.splice(0)) listener(...notice);
    return () => void this.#listeners.delete(listener);
  };

  notify(...notice: Notice): void {
    if (this.#listeners.size === 0) this.#kept.push(notice);
    for (const listener of this.#listeners) listener(...notice);
  }
}
