import { networkLevels } from '#security';
import { Shares } from '#wire';
import type { FullShare } from './body-memory.ts';

/** A body that is not read yet, because there is no memory for it. */
export interface WaitingBody {
  readonly network: string;
  /** Its account; empty without one. */
  readonly account: string;
  /** Asks for its memory. Returns the count that has no room, or null if it has its memory now. */
  take(): FullShare | null;
  /** Called once the body has its memory: it can be read now. */
  begin(): void;
  /** Called if the body does not get any memory. `full`: the count for which it waited. */
  refuse(full: FullShare): void;
}

interface WaitingLimits {
  /** How long a body waits at most. 0: it is refused at once. */
  readonly bodiesWaitMs: number;
  /** How many may wait. An account and a network may have a quarter each, and as many as it leaves free. */
  readonly bodiesWaitingMax: number;
}

/** One account and one network may have this part of the places (1 / SHARE), as of the memory. */
const SHARE = 4;

/** The bodies of one account from one network. */
interface BodyQueue {
  /** With the end of their time. */
  readonly bodies: Map<WaitingBody, NodeJS.Timeout>;
  /** The count for which the first one waits. */
  full: FullShare;
}

/**
 * Bodies that wait for memory. Networks take turns, and in each network its accounts do. So a client waits for one body
 * of each other client, however many these have. A body that waits for the memory of all keeps its turn until it fits,
 * because smaller ones that came later would otherwise always be served first.
 */
export class WaitingBodies {
  readonly #limits: WaitingLimits;
  /** By network, then by account. The first ones are the next ones. */
  readonly #networks = new Map<string, Map<string, BodyQueue>>();
  readonly #ofNetwork: Shares;
  /** Without those of no account. */
  readonly #ofAccount: Shares;
  /** The next body waits for the memory of all. */
  #allIsFull = false;
  #serving = false;

  constructor(limits: WaitingLimits) {
    this.#limits = limits;
    const max = limits.bodiesWaitingMax;
    const mostOfOne = Math.max(1, Math.floor(max / SHARE));
    this.#ofNetwork = new Shares(max, mostOfOne, networkLevels);
    this.#ofAccount = new Shares(max, mostOfOne);
  }

  get count(): number {
    return this.#ofNetwork.all;
  }

  /** Begins a body now or later, or refuses it. */
  enter(body: WaitingBody): void {
    const { network, account } = body;
    const own = this.#networks.get(network);
    let full: FullShare | null = this.#allIsFull ? 'gateway' : null;
    if (own !== undefined) full = own.get(account)?.full ?? 'network';
    full ??= body.take();
    if (full === null) return body.begin();
    if (this.#limits.bodiesWaitMs === 0 || !this.#hasPlace(network, account)) return body.refuse(full);
    this.#add(body, full);
    // Its turn may have come: others of its network may wait for their accounts alone.
    this.serve();
  }

  leave(body: WaitingBody): void {
    const { network, account } = body;
    const accounts = this.#networks.get(network);
    const line = accounts?.get(account);
    const timer = line?.bodies.get(body);
    if (timer === undefined) return;
    clearTimeout(timer);
    line!.bodies.delete(body);
    if (line!.bodies.size === 0) accounts!.delete(account);
    if (accounts!.size === 0) this.#networks.delete(network);
    this.#ofNetwork.leave(network);
    if (account !== '') this.#ofAccount.leave(account);
    // It may have been the one for which others waited.
    if (this.count === 0) this.#allIsFull = false;
  }

  /** Begins the bodies for which there is memory now. To be called when memory became free. */
  serve(): void {
    // A body that is tried gives its memory back if it does not fit.
    if (this.#serving || this.count === 0) return;
    this.#serving = true;
    try {
      for (let next = this.#next(); next !== null; next = this.#next()) next.begin();
    } finally {
      this.#serving = false;
    }
  }

  close(): void {
    for (const accounts of this.#networks.values())
      for (const { bodies } of accounts.values())
        for (const body of bodies.keys()) {
          this.leave(body);
          body.refuse('gateway');
        }
  }

  #hasPlace(network: string, account: string): boolean {
    return this.#ofNetwork.mayTake(network) && (account === '' || this.#ofAccount.mayTake(account));
  }

  #add(body: WaitingBody, full: FullShare): void {
    const { network, account } = body;
    let accounts = this.#networks.get(network);
    if (accounts === undefined) this.#networks.set(network, (accounts = new Map<string, BodyQueue>()));
    let line = accounts.get(account);
    if (line === undefined) accounts.set(account, (line = { bodies: new Map(), full }));
    const { bodies } = line;
    const timer = setTimeout(() => {
      this.leave(body);
      body.refuse(line.full);
      this.serve();
    }, this.#limits.bodiesWaitMs).unref();
    bodies.set(body, timer);
    this.#ofNetwork.take(network);
    if (account !== '') this.#ofAccount.take(account);
  }

  /** Takes out the next body for which there is memory. It has its memory. null if all must wait. */
  #next(): WaitingBody | null {
    this.#allIsFull = false;
    for (const [network, accounts] of this.#networks) {
      for (const [account, line] of accounts) {
        const body = line.bodies.keys().next().value!;
        const full = body.take();
        if (full !== null) line.full = full;
        if (full === 'gateway') {
          this.#allIsFull = true;
          return null;
        }
        if (full === 'network') break;
        if (full === 'account') continue;
        this.leave(body);
        toTheEnd(accounts, account);
        toTheEnd(this.#networks, network);
        return body;
      }
    }
    return null;
  }
}

function toTheEnd<T>(map: Map<string, T>, key: string): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}
