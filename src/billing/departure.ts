/** Whether somebody has left a call. AbortSignal is one. */
export interface Leaving {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * A Leaving that costs nothing while nobody leaves: there are several for each call. Listeners are called once, in
 * their order.
 */
export class Departure implements Leaving {
  aborted = false;
  #listeners: (() => void)[] = [];

  /** Without effect when called again. */
  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }
}

/** The AbortSignal of a departure, for what takes no other. */
export function signalOf(leaving: Leaving): AbortSignal {
  if (leaving instanceof AbortSignal) return leaving;
  const controller = new AbortController();
  if (leaving.aborted) controller.abort();
  else leaving.addEventListener('abort', () => controller.abort());
  return controller.signal;
}
