import { setTimeout as pause } from 'node:timers/promises';
import type { Batch, BatchFault, BatchStatus } from './batch.ts';

interface RunPlace {
  /** Takes a place for the batch, whose lines are checked. False if all are taken now. */
  mayRun(batch: Batch): boolean;
  /** One of its lines is long, so another batch may have its place. */
  becomeLong(): void;
}

const ALWAYS: RunPlace = { mayRun: () => true, becomeLong() {} };

/** The hold of this gateway on a batch that it works on. */
export class Claim {
  readonly id: string;
  /** The status of the batch, as of the last look. */
  status: BatchStatus;
  /** Set if the operator has ended the batch: what its lines get that have no answer. */
  ended: Pick<BatchFault, 'code' | 'message'> | null = null;
  readonly #isStopping: () => boolean;
  readonly #place: RunPlace;
  readonly #over = new AbortController();
  readonly #way = new AbortController();
  readonly #stop = AbortSignal.any([this.#over.signal, this.#way.signal]);

  constructor(id: string, status: BatchStatus, isStopping: () => boolean, place: RunPlace = ALWAYS) {
    this.id = id;
    this.status = status;
    this.#isStopping = isStopping;
    this.#place = place;
  }

  mayRun(batch: Batch): boolean {
    return this.#place.mayRun(batch);
  }

  becomeLong(): void {
    this.#place.becomeLong();
  }

  /** Others wait for the place of this batch: no other line of it begins, and it goes on later. */
  giveWay(): void {
    this.#way.abort();
  }

  get givesWay(): boolean {
    return this.#way.signal.aborted;
  }

  /** Aborts when the batch has to give way, or the claim is lost. */
  get stop(): AbortSignal {
    return this.#stop;
  }

  /** Another gateway has the batch, or may have it. */
  get isLost(): boolean {
    return this.#over.signal.aborted;
  }

  get goesOn(): boolean {
    return !this.isLost && !this.#isStopping();
  }

  get isCancelled(): boolean {
    return this.status === 'cancelling';
  }

  /** `ended`: the operator has ended the batch. */
  cancel(ended: BatchFault | null): void {
    this.status = 'cancelling';
    if (ended !== null) this.ended = { code: ended.code, message: ended.message };
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
  readonly pauseMs: number;

  constructor(message: string, pauseMs = NOT_NOW_MS) {
    super(message);
    this.pauseMs = pauseMs;
  }
}

const NOT_NOW_MS = 30_000;
