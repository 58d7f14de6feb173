/** As many times as much as is free: 7/8 of all, and 3/4. */
const TIMES_OF_WIDEST = 7;
const TIMES_BETWEEN = 3;

type LevelsOf = (party: string) => readonly string[];
const NONE: readonly string[] = [];
const alone: LevelsOf = () => NONE;

/**
 * Places that accounts, networks or other parties use at the same time. As everywhere in the gateway, a party may take
 * more while at least as much is free before as it holds after it. So a single party gets half, n parties get about
 * 1/(n + 1) each, and no number of greedy parties leaves nothing for the next one.
 *
 * Who has one network easily has those beside it, so parties that are networks count with the wider ones they are in:
 * the widest may have 7/8 of all, and one between 3/4, of what is free in the same way.
 */
export class Shares {
  readonly max: number;
  readonly #mostOfOne: number;
  readonly #levelsOf: LevelsOf;
  readonly #held = new Map<string, number>();
  #all = 0;

  /**
   * `mostOfOne`: places that one party gets at most. `levelsOf`: what a party is in, the widest first, and at last
   * itself under any name; see networkLevels. Default: each stands alone.
   */
  constructor(max: number, mostOfOne: number = max, levelsOf: LevelsOf = alone) {
    this.max = max;
    this.#mostOfOne = mostOfOne;
    this.#levelsOf = levelsOf;
  }

  mayTake(party: string, amount = 1): boolean {
    const free = this.max - this.#all;
    const held = this.amountOf(party) + amount;
    if (held > this.#mostOfOne || held > free) return false;
    const levels = this.#levelsOf(party);
    for (let at = 0; at < levels.length - 1; at++)
      if (this.amountOf(levels[at]!) + amount > (at === 0 ? TIMES_OF_WIDEST : TIMES_BETWEEN) * free) return false;
    return true;
  }

  take(party: string, amount = 1): void {
    this.#add(party, amount);
  }

  leave(party: string, amount = 1): void {
    this.#add(party, -amount);
  }

  #add(party: string, amount: number): void {
    this.#all += amount;
    this.#count(party, amount);
    const levels = this.#levelsOf(party);
    for (let at = 0; at < levels.length - 1; at++) this.#count(levels[at]!, amount);
  }

  #count(name: string, amount: number): void {
    const held = this.amountOf(name) + amount;
    if (held > 0) this.#held.set(name, held);
    else this.#held.delete(name);
  }

  amountOf(party: string): number {
    return this.#held.get(party) ?? 0;
  }

  /** The sum of all parties. */
  get all(): number {
    return this.#all;
  }
}

/** Names an account, or a part of it, such as a restricted key. */
export const partyOf = ({ account, within }: { readonly account: string; readonly within?: string | null }): string =>
  within ? `${account}\n${within}` : account;

/** The account of a party. */
export const accountOfParty = (party: string): string => party.split('\n', 1)[0]!;

/**
 * Places that accounts have, and that the parties of an account share: one that is alone gets `ofOne`, of twice as many
 * for all parties of its account.
 */
export class PartyShares {
  readonly #ofOne: number;
  readonly #accounts: Shares;
  readonly #parties = new Map<string, Shares>();

  /** `max`: of all accounts. */
  constructor(ofOne: number, max = Infinity) {
    this.#ofOne = ofOne;
    this.#accounts = new Shares(max, 2 * ofOne);
  }

  mayTake(party: string): boolean {
    const account = accountOfParty(party);
    return this.#accounts.mayTake(account) && this.#partiesOf(account).mayTake(party);
  }

  take(party: string): void {
    const account = accountOfParty(party);
    const parties = this.#partiesOf(account);
    this.#parties.set(account, parties);
    this.#accounts.take(account);
    parties.take(party);
  }

  leave(party: string): void {
    const account = accountOfParty(party);
    const parties = this.#partiesOf(account);
    this.#accounts.leave(account);
    parties.leave(party);
    if (parties.all === 0) this.#parties.delete(account);
  }

  #partiesOf(account: string): Shares {
    return this.#parties.get(account) ?? new Shares(2 * this.#ofOne, this.#ofOne);
  }
}
