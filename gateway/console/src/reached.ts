/** Tells that the service can be reached again: the network is back, or the event stream after an interruption. */
const listeners = new Set<() => void>();

/** Calls `listener` whenever that happens, until the returned function is called. */
export const onReached = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const reached = (): void => listeners.forEach((listener) => listener());
