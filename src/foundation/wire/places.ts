import { getOrInsert } from './collections.ts';
import { accountOfParty, PartyShares, partyOf, Shares } from './shares.ts';

export { accountOfParty, PartyShares, partyOf, Shares };

interface PlacesOptions {
  readonly total: number;
  readonly perShare: number;
  /** Milliseconds after which a job is long: its place is free for another one. Default: none becomes long by time. */
  readonly longMs?: number;
  /** Most long jobs. A job that finds no room among them keeps its place. Default 0. */
  readonly longTotal?: number;
}

export interface JobPlace {
  /** The job is long from now on, if there is room for one more of its share. */
  becomeLong(): void;
  /** The job has ended. Further calls have no effect. */
  release(): void;
}

interface TakeOptions {
  /** Default: the account's own. */
  readonly share?: string;
  readonly onLong?: (() => void) | undefined;
}

interface Held {
  readonly share: string;
  readonly onLong: TakeOptions['onLong'];
  state: 'held' | 'asks' | 'long' | 'released';
  timer: NodeJS.Timeout | undefined;
}

interface WaitingJob {
  readonly share: string;
  readonly onLong: TakeOptions['onLong'];
  readonly give: (place: JobPlace) => void;
}

/**
 * Places for jobs of many accounts that run at the same time, divided by `Shares`. A share is an account, or several
 * that get together what one account gets. Accounts that wait take turns.
 */
export class Places {
  readonly #longMs: number | undefined;
  readonly #held: Shares;
  readonly #long: Shares;
  /** By account. Whose turn comes next is first. */
  readonly #waiting = new Map<string, WaitingJob[]>();
  /** Jobs that are long, and found no room among those. */
  readonly #asking = new Set<Held>();

  constructor({ total, perShare, longMs, longTotal = 0 }: PlacesOptions) {
    this.#longMs = longMs;
    this.#held = new Shares(total, perShare);
    this.#long = new Shares(longTotal, perShare);
  }

  countOf(share: string): number {
    return this.#held.amountOf(share);
  }

  /** null if there is no place for the account now. */
  tryTake(account: string, { share = account, onLong }: TakeOptions = {}): JobPlace | null {
    if (this.#waiting.has(account) || !this.#held.mayTake(share)) return null;
    return this.#give(share, onLong);
  }

  /** Resolves with a place, or with null if `stop` aborts before. */
  take(account: string, options: TakeOptions & { readonly stop?: AbortSignal } = {}): Promise<JobPlace | null> {
    const { share = account, onLong, stop } = options;
    if (stop?.aborted) return Promise.resolve(null);
    const place = this.tryTake(account, options);
    if (place !== null) return Promise.resolve(place);
    return new Promise((resolve) => {
      const waiting: WaitingJob = { share, onLong, give };
      const own = getOrInsert(this.#waiting, account, () => []);
      own.push(waiting);
      const leave = () => {
        const all = this.#waiting.get(account)!;
        all.splice(all.indexOf(waiting), 1);
        if (all.length === 0) this.#waiting.delete(account);
        resolve(null);
      };
      stop?.addEventListener('abort', leave, { once: true });
      function give(jobPlace: JobPlace) {
        stop?.removeEventListener('abort', leave);
        resolve(jobPlace);
      }
    });
  }

  #give(share: string, onLong: TakeOptions['onLong']): JobPlace {
    this.#held.take(share);
    const held: Held = { share, onLong, state: 'held', timer: undefined };
    const becomeLong = () => {
      if (held.state !== 'held') return;
      held.state = 'asks';
      this.#asking.add(held);
      this.#settle();
    };
    if (this.#longMs !== undefined) held.timer = setTimeout(becomeLong, this.#longMs).unref();
    return {
      becomeLong,
      release: () => {
        if (held.state === 'released') return;
        clearTimeout(held.timer);
        (held.state === 'long' ? this.#long : this.#held).leave(share);
        this.#asking.delete(held);
        held.state = 'released';
        this.#settle();
      },
    };
  }

  /** Lets jobs become long that ask for it, and gives all places that are free. */
  #settle(): void {
    for (const held of this.#asking) {
      if (!this.#long.mayTake(held.share)) continue;
      this.#asking.delete(held);
      held.state = 'long';
      this.#held.leave(held.share);
      this.#long.take(held.share);
      held.onLong?.();
    }
    while (this.#giveNext());
  }

  #giveNext(): boolean {
    for (const [account, waiting] of this.#waiting) {
      if (!this.#held.mayTake(waiting[0]!.share)) continue;
      const { share, onLong, give } = waiting.shift()!;
      this.#waiting.delete(account);
      // Behind the other accounts.
      if (waiting.length > 0) this.#waiting.set(account, waiting);
      give(this.#give(share, onLong));
      return true;
    }
    return false;
  }
}
