/** Tells sentences to listeners. What is told before there is one is kept for the first. */
export class Notifier<Told extends unknown[]> {
  #listeners = new Set<(...told: Told) => void>();
  #kept: Told[] = [];

  readonly listen = (listener: (...told: Told) => void): (() => void) => {
    this.#listeners.add(listener);
    for (const told of this.#kept.splice(0)) listener(...told);
    return () => void this.#listeners.delete(listener);
  };

  tell(...told: Told): void {
    if (this.#listeners.size === 0) this.#kept.push(told);
    for (const listener of this.#listeners) listener(...told);
  }
}
