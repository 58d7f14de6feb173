/**
 * Places that accounts, networks or other parties use at the same time. As everywhere in the gateway, a party may take
 * more while at least as much is free before as it holds after it. So a single party gets half, n parties get about
 * 1/(n + 1) each, and no number of greedy parties leaves nothing for the next one.
 */
export class Shares {
  readonly max: number;
  readonly #mostOfOne: number;
  readonly #held = new Map<string, number>();
  #all = 0;

  /** `mostOfOne`: places that one party gets at most. */
  constructor(max: number, mostOfOne: number = max) {
    this.max = max;
    this.#mostOfOne = mostOfOne;
  }

  mayTake(party: string, amount = 1): boolean {
    const held = this.amountOf(party) + amount;
    return held <= this.#mostOfOne && held <= this.max - this.#all;
  }

  take(party: string, amount = 1): void {
    this.#held.set(party, this.amountOf(party) + amount);
    this.#all += amount;
  }

  leave(party: string, amount = 1): void {
    const rest = this.amountOf(party) - amount;
    if (rest > 0) this.#held.set(party, rest);
    else this.#held.delete(party);
    this.#all -= amount;
  }

  amountOf(party: string): number {
    return this.#held.get(party) ?? 0;
  }

  /** The sum of all parties. */
  get all(): number {
    return this.#all;
  }
}
