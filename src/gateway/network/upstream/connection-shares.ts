import { UpstreamFailure } from '#wire';
import { IdleMap } from '#maps';

/**
 * Shares the connections to one address among accounts. An account may take a further connection while more are free
 * than it holds. So a single account gets half of them, several accounts get about equal parts, and one is always left
 * for the next account. A request beyond its account's share waits until another request ends. Waiting accounts are
 * served round-robin.
 */
export interface ConnectionShares {
  /**
   * Calls `begin` when the account may use a connection, at once or later. Calls `refuse` if the request waited too
   * long, or if too many requests of the account wait. `size`: how much of the whole the request takes, at most a
   * quarter; default 1.
   */
  enter(account: string, begin: () => void, refuse: (failure: UpstreamFailure) => void, size?: number): ConnectionSlot;
  /** Whether no account has a connection or waits for one. */
  readonly idle: boolean;
  /** Refuses all waiting requests. */
  close(): void;
}

export interface ConnectionSlot {
  /**
   * To be called when the request is over, whether it began or not. Frees its connection. Further calls have no effect.
   */
  leave(): void;
}

interface ConnectionSharesOptions {
  /** Connections to the address, or bytes of memory. */
  readonly max: number;
  /** The unit of `max`. Default: connections. */
  readonly unit?: 'connections' | 'bytes';
  /** How long a request waits for a connection. 0: it is refused at once. */
  readonly waitMs: number;
}

/** Requests of one account that wait. The largest number of connections of an address is as large. */
const WAITING_MAX = 65_535;

export function createConnectionShares(options: ConnectionSharesOptions): ConnectionShares {
  return new Shares(options);
}

interface Share {
  held: number;
  readonly waiting: Set<WaitingRequest>;
}

class Shares implements ConnectionShares {
  readonly #options: ConnectionSharesOptions;
  readonly #shares = new IdleMap<Share>(
    () => ({ held: 0, waiting: new Set() }),
    ({ held, waiting }) => held === 0 && waiting.size === 0,
  );
  /** Accounts with waiting requests, in the order in which they are served. */
  readonly #queue = new Set<Share>();
  #held = 0;

  constructor(options: ConnectionSharesOptions) {
    this.#options = options;
  }

  get unit(): 'connections' | 'bytes' {
    return this.#options.unit ?? 'connections';
  }

  enter(account: string, begin: () => void, refuse: (failure: UpstreamFailure) => void, size = 1): ConnectionSlot {
    const share = this.#shares.get(account);
    const request = new WaitingRequest(this, share, size, begin, refuse);
    const { max, waitMs } = this.#options;
    if (share.waiting.size === 0 && this.#mayTake(share, size)) this.#begin(request);
    else if (waitMs === 0 || share.waiting.size >= Math.min(max, WAITING_MAX)) request.refuse();
    else {
      share.waiting.add(request);
      this.#queue.add(share);
      request.timer = setTimeout(() => request.refuse(), waitMs).unref();
    }
    return request;
  }

  get idle(): boolean {
    return this.#held === 0 && this.#queue.size === 0;
  }

  close(): void {
    for (const { waiting } of this.#queue) for (const request of waiting) request.refuse();
  }

  /** A request is over. `held`: whether it had a connection. */
  leave(request: WaitingRequest, held: boolean): void {
    const { share, size } = request;
    if (held) {
      share.held -= size;
      this.#held -= size;
    } else if (share.waiting.delete(request) && share.waiting.size === 0) this.#queue.delete(share);
    if (held && this.#queue.size > 0) this.#serve();
  }

  #mayTake({ held }: Share, size: number): boolean {
    return held + size <= this.#options.max - this.#held;
  }

  #begin(request: WaitingRequest): void {
    request.share.held += request.size;
    this.#held += request.size;
    request.begin();
  }

  /**
   * A loop, because one freed connection can allow several requests: each account's share grows with the number of free
   * connections.
   */
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
    for (const share of this.#queue) {
      const [request] = share.waiting;
      if (this.#mayTake(share, request!.size)) return share;
    }
    return undefined;
  }
}

/** A class and not closures, because there is one for each request. */
class WaitingRequest implements ConnectionSlot {
  readonly share: Share;
  readonly size: number;
  timer: NodeJS.Timeout | undefined;
  readonly #shares: Shares;
  readonly #begin: () => void;
  readonly #refuse: (failure: UpstreamFailure) => void;
  #state: 'waits' | 'holds' | 'left' = 'waits';

  constructor(
    shares: Shares,
    share: Share,
    size: number,
    begin: () => void,
    refuse: (failure: UpstreamFailure) => void,
  ) {
    this.#shares = shares;
    this.share = share;
    this.size = size;
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
    this.#refuse(crowded(held, this.#shares.unit));
  }

  leave(): void {
    if (this.#state === 'left') return;
    clearTimeout(this.timer);
    const held = this.#state === 'holds';
    this.#state = 'left';
    this.#shares.leave(this, held);
  }
}

/** Blames the account, not the provider, because the account has used up its share. */
function crowded(held: number, unit: 'connections' | 'bytes'): UpstreamFailure {
  const [all, own] =
    unit === 'bytes'
      ? ['All memory for large requests to this provider is', `${held} bytes of large requests`]
      : ['All connections to this provider are', `${held} requests`];
  const message =
    held === 0
      ? `${all} taken at the moment: retry in a moment`
      : `This account has ${own} open at this provider, which is its share there: retry when one of them has ended`;
  return new UpstreamFailure(message, { retryable: true, attributedTo: 'account', unsent: true });
}
