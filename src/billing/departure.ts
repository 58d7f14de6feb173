/** Tells whether a participant has left a call. AbortSignal implements this interface. */
export interface Leaving {
  readonly aborted: boolean;
  /** Aborts after it if the call has to end at once, without reading on for its usage. Absent: never. */
  readonly cut?: Leaving;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * A Leaving that is cheaper than AbortSignal, because each call has several of them. Listeners are called once, in the
 * order of their registration.
 */
export class Departure implements Leaving {
  aborted = false;
  #listeners: (() => void)[] = [];

  /** A second call has no effect. */
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

/** The Departure of a call that the gateway can also cut. */
export class CuttableDeparture extends Departure {
  readonly cut = new Departure();
}

/** The AbortSignal of a Leaving, for APIs that take only an AbortSignal. */
export function signalOf(leaving: Leaving): AbortSignal {
  if (leaving instanceof AbortSignal) return leaving;
  const controller = new AbortController();
  if (leaving.aborted) controller.abort();
  else leaving.addEventListener('abort', () => controller.abort());
  return controller.signal;
}

/**
 * Aborts when one of the two aborts, with its reason. Both must belong to one call. AbortSignal.any would keep the call
 * in memory until V8's next full collection, and so would a listener on a signal that lives longer (decision 91).
 */
export function eitherOf(one: Leaving, other: Leaving): AbortSignal {
  const controller = new AbortController();
  for (const leaving of [one, other]) {
    const abort = () => controller.abort((leaving as Partial<AbortSignal>).reason);
    if (leaving.aborted) abort();
    else leaving.addEventListener('abort', abort);
  }
  return controller.signal;
}
