/** Polls the database at intervals, one poll at a time. */
export class Poller {
  readonly #poll: () => Promise<void>;
  readonly #pollMs: number;
  readonly #goesOn: () => boolean;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | null = null;
  #catching: Promise<void> | null = null;
  #stopped = false;

  /** `poll` never rejects. `goesOn`: whether another poll follows one that has ended. */
  constructor(poll: () => Promise<void>, pollMs: number, goesOn: () => boolean) {
    this.#poll = poll;
    this.#pollMs = pollMs;
    this.#goesOn = goesOn;
  }

  /** The running poll. null if no poll runs. */
  get running(): Promise<void> | null {
    return this.#polling;
  }

  /** Polls after the interval, unless a poll runs or is scheduled. */
  schedule(): void {
    if (this.#stopped || this.#timer !== undefined || this.#polling !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#polling = this.#run();
    }, this.#pollMs).unref();
  }

  /** Settles at the end of a poll that began after this call, or soon after `stop`. */
  catchUp(): Promise<void> {
    return (this.#catching ??= this.#pollAfresh().finally(() => (this.#catching = null)));
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    await this.#poll();
    this.#polling = null;
    if (this.#goesOn()) this.schedule();
  }

  async #pollAfresh(): Promise<void> {
    // The running poll may have read the database before this call.
    await this.#polling;
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#polling ??= this.#run();
    await this.#polling;
  }
}
