import { UpstreamFailure } from '#wire';

/**
 * Shares the connections to one address among the accounts whose requests go there. An account may take one more while
 * at least as many are free as it holds. Alone it gets half of them, and beside others about an equal part: one is
 * always left for the next account. A request beyond its account's share waits until another ends. Accounts are served
 * in turn.
 */
export interface ConnectionShares {
  /**
   * Calls `begin` once there is a connection for the account, at once or later; or `refuse` where it waited too
   * long, or too many of its requests wait.
   */
  enter(account: string, begin: () => void, refuse: (failure: UpstreamFailure) => void): Entry;
  /** Nobody has a connection, or waits for one. */
  readonly idle: boolean;
  /** Refuses all requests that wait. */
  close(): void;
}

export interface Entry {
  /** The request is over, begun or not: its connection is free. Without effect when called again. */
  leave(): void;
}

interface ConnectionSharesOptions {
  /** Connections to the address. */
  readonly max: number;
  /** How long a request waits for one; 0 for not at all. */
  readonly waitMs: number;
}

export function createConnectionShares(options: ConnectionSharesOptions): ConnectionShares {
  return new Shares(options);
}

/** Of one account. */
interface Share {
  readonly account: string;
  held: number;
  readonly waiting: Set<Request>;
}

class Shares implements ConnectionShares {
  readonly #options: ConnectionSharesOptions;
  readonly #shares = new Map<string, Share>();
  /** Accounts with requests that wait, in the order of their turns. */
  readonly #queue = new Set<Share>();
  #held = 0;

  constructor(options: ConnectionSharesOptions) {
    this.#options = options;
  }

  enter(account: string, begin: () => void, refuse: (failure: UpstreamFailure) => void): Entry {
    let share = this.#shares.get(account);
    if (!share) this.#shares.set(account, (share = { account, held: 0, waiting: new Set() }));
    const request = new Request(this, share, begin, refuse);
    const { max, waitMs } = this.#options;
    if (share.waiting.size === 0 && this.#mayTake(share)) this.#begin(request);
    else if (waitMs === 0 || share.waiting.size >= max) request.refuse();
    else {
      share.waiting.add(request);
      this.#queue.add(share);
      request.timer = setTimeout(() => request.refuse(), waitMs).unref();
    }
    return request;
  }

  get idle(): boolean {
    return this.#shares.size === 0;
  }

  close(): void {
    for (const { waiting } of this.#queue) for (const request of waiting) request.refuse();
  }

  /** A request is over. */
  left(request: Request, held: boolean): void {
    const { share } = request;
    if (held) {
      share.held -= 1;
      this.#held -= 1;
    } else if (share.waiting.delete(request) && share.waiting.size === 0) this.#queue.delete(share);
    if (share.held === 0 && share.waiting.size === 0) this.#shares.delete(share.account);
    if (held && this.#queue.size > 0) this.#serve();
  }

  #mayTake({ held }: Share): boolean {
    return held < this.#options.max - this.#held;
  }

  #begin(request: Request): void {
    request.share.held += 1;
    this.#held += 1;
    request.begin();
  }

  /** One that ended may leave room for several: the more are free, the more an account may have. */
  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const [request] = next.waiting;
      next.waiting.delete(request!);
      this.#queue.delete(next);
      if (next.waiting.size > 0) this.#queue.add(next);
      this.#begin(request!);
    }
  }

  #next(): Share | undefined {
    for (const share of this.#queue) if (this.#mayTake(share)) return share;
    return undefined;
  }
}

/** A class, as there is one for each request. */
class Request implements Entry {
  readonly share: Share;
  timer: NodeJS.Timeout | undefined;
  readonly #shares: Shares;
  readonly #begin: () => void;
  readonly #refuse: (failure: UpstreamFailure) => void;
  #state: 'waits' | 'holds' | 'left' = 'waits';

  constructor(shares: Shares, share: Share, begin: () => void, refuse: (failure: UpstreamFailure) => void) {
    this.#shares = shares;
    this.share = share;
    this.#begin = begin;
    this.#refuse = refuse;
  }

  begin(): void {
    clearTimeout(this.timer);
    this.#state = 'holds';
    this.#begin();
  }

  refuse(): void {
    const { held } = this.share;
    this.leave();
    this.#refuse(crowded(held));
  }

  leave(): void {
    if (this.#state === 'left') return;
    clearTimeout(this.timer);
    const held = this.#state === 'holds';
    this.#state = 'left';
    this.#shares.left(this, held);
  }
}

/** The account's own doing, and nobody's failure. */
function crowded(held: number): UpstreamFailure {
  const message =
    held === 0
      ? 'All connections to this provider are taken at the moment: retry in a moment'
      : `This account has ${held} requests open at this provider, which is its share of the connections there: retry when one of them has ended`;
  return new UpstreamFailure(message, { retryable: true, blame: 'account', unsent: true });
}
