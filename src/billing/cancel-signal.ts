/** Tells whether a participant has left a call. AbortSignal implements this interface. */
export interface CancelSignal {
  readonly aborted: boolean;
  /** The client has left, and what its provider still sends is read on until `aborted`. Absent: false. */
  readonly clientLeft?: boolean;
  /** Aborts after it if the call has to end at once, without reading on for its usage. Absent: never. */
  readonly cut?: CancelSignal;
  /** Nobody has left: the gateway itself ends the call. Absent: false. */
  readonly byGateway?: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * A CancelSignal that is cheaper than AbortSignal, because each call has several of them. Listeners are called once, in
 * the order of their registration.
 */
export class CancelSource implements CancelSignal {
  aborted = false;
  clientLeft = false;
  byGateway = false;
  /** null for none, because most signals of a call have one listener: V8 gives an empty list room for 17. */
  #listeners: (() => void)[] | null = null;

  /** A second call has no effect. */
  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    const listeners = this.#listeners ?? [];
    this.#listeners = null;
    for (const listener of listeners) listener();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.#listeners === null) this.#listeners = [listener];
    else this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1;
    if (at !== -1) this.#listeners!.splice(at, 1);
  }
}

/** The CancelSource of a call that the gateway can also cut. */
export class CuttableCancelSource extends CancelSource {
  readonly cut = new CancelSource();
}

/** The AbortSignal of A CancelSignal, for APIs that take only an AbortSignal. */
export function signalOf(cancelSignal: CancelSignal): AbortSignal {
  if (cancelSignal instanceof AbortSignal) return cancelSignal;
  const controller = new AbortController();
  if (cancelSignal.aborted) controller.abort();
  else cancelSignal.addEventListener('abort', () => controller.abort());
  return controller.signal;
}

/**
 * Aborts when one of the two aborts, with its reason. Both must belong to one call. AbortSignal.any would keep the call
 * in memory until V8's next full collection, and so would a listener on a signal that lives longer (decision 91).
 */
export function eitherOf(one: CancelSignal, other: CancelSignal): AbortSignal {
  const controller = new AbortController();
  for (const cancelSignal of [one, other]) {
    const abort = () => controller.abort((cancelSignal as Partial<AbortSignal>).reason);
    if (cancelSignal.aborted) abort();
    else cancelSignal.addEventListener('abort', abort);
  }
  return controller.signal;
}

/**
 * Runs `work` with a signal that aborts when one of these does, with its reason. It listens to them only until `work`
 * has ended, so they may live longer than a call, as the end of a session does.
 */
export async function runUntilAborted<T>(
  cancelSignals: readonly CancelSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const listening = cancelSignals.map((cancelSignal) => {
    const abort = () => controller.abort((cancelSignal as Partial<AbortSignal>).reason);
    if (cancelSignal.aborted) abort();
    else cancelSignal.addEventListener('abort', abort);
    return () => cancelSignal.removeEventListener('abort', abort);
  });
  try {
    return await work(controller.signal);
  } finally {
    for (const leave of listening) leave();
  }
}
