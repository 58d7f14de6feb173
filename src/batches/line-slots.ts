import { getOrInsert } from '#wire';

/**
 * Places for the lines of batches that a gateway calls at the same time. They are few, so that calls whose clients wait
 * find the gateway and the providers free. Accounts take turns.
 */
export class LineSlots {
  readonly #total: number;
  readonly #perAccount: number;
  readonly #taken = new Map<string, number>();
  /** Those that wait, by account. Whose turn comes next is first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #all = 0;

  constructor(total: number, perAccount: number) {
    this.#total = total;
    this.#perAccount = perAccount;
  }

  /** Resolves with the function that gives the place back. */
  async take(account: string): Promise<() => void> {
    if (!this.#isFree(account) || this.#waiting.has(account))
      await new Promise<void>((resolve) => {
        getOrInsert(this.#waiting, account, () => []).push(resolve);
      });
    else this.#add(account, 1);
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      this.#add(account, -1);
      this.#serve();
    };
  }

  #isFree(account: string): boolean {
    return this.#all < this.#total && (this.#taken.get(account) ?? 0) < this.#perAccount;
  }

  #add(account: string, places: number): void {
    const taken = (this.#taken.get(account) ?? 0) + places;
    this.#all += places;
    if (taken === 0) this.#taken.delete(account);
    else this.#taken.set(account, taken);
  }

  #serve(): void {
    for (const [account, waiting] of this.#waiting) {
      if (!this.#isFree(account)) continue;
      const next = waiting.shift()!;
      this.#waiting.delete(account);
      // Behind the other accounts.
      if (waiting.length > 0) this.#waiting.set(account, waiting);
      this.#add(account, 1);
      return next();
    }
  }
}
