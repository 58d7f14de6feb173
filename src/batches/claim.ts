import { setTimeout as pause } from 'node:timers/promises';
import type { BatchStatus } from './batch.ts';

/** The hold of this gateway on a batch that it works on. */
export class Claim {
  /** The name of the claim in the row of the batch. */
  readonly id: string;
  /** The status of the batch, as of the last look. */
  status: BatchStatus;
  readonly #isStopping: () => boolean;
  readonly #over = new AbortController();

  constructor(id: string, status: BatchStatus, isStopping: () => boolean) {
    this.id = id;
    this.status = status;
    this.#isStopping = isStopping;
  }

  /** Another gateway has the batch, or may have it. */
  get isLost(): boolean {
    return this.#over.signal.aborted;
  }

  /** Whether this gateway may begin something new of the batch. */
  get goesOn(): boolean {
    return !this.isLost && !this.#isStopping();
  }

  get isCancelled(): boolean {
    return this.status === 'cancelling';
  }

  lose(): void {
    this.#over.abort();
  }

  /** Resolves after this time, or when the claim is lost. */
  async rest(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#over.signal, ref: false }).catch(() => {});
  }
}

/** The batch cannot go on now: no provider of a model is there, or one has its lines. */
export class NotNow extends Error {
  override readonly name = 'NotNow';
  /** The pause until it is tried again. */
  readonly pauseMs: number;

  constructor(message: string, pauseMs = NOT_NOW_MS) {
    super(message);
    this.pauseMs = pauseMs;
  }
}

const NOT_NOW_MS = 30_000;
