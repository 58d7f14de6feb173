import { GatewayError } from '#errors';
import { networkLevels } from '#security';
import { Shares } from '#wire';
import { type TokenBucket, type BudgetSize, NetworkBudgets } from '#wire/budgets';
import { FRAME_BUDGET } from '#wire/frame-meter';

/**
 * Dials of one network. A dial takes 1 to 3 ms: its signature is checked, and an HTTP/2 session begins. The first
 * number lets the proxies of a large site return together after a restart.
 */
const DIALS: BudgetSize = { atOnce: 250, perSecond: 10 };

/**
 * Work of registrations, in units that take about 7 µs each. A file of a thousand models has about 11,000, and the
 * largest file about 40,000.
 */
const OF_NETWORK: BudgetSize = { atOnce: 300_000, perSecond: 10_000 };
const OF_PROVIDER: BudgetSize = { atOnce: 120_000, perSecond: 2_000 };
/** Every registration: its signature, and its place in the database. */
const WORK_LEAST = 1_000;
const BYTES_PER_UNIT = 128;
/** Members of the objects of a document. One with more is refused after its structure was looked at. */
const MEMBERS_MAX = 70_000;
/** The proxy dials again if its registration is not answered within 30 s. */
const WAIT_MS_MAX = 15_000;

/** A network dials too often. `isRepeated`: its last dial was refused for this too. */
export class DialsSpent extends GatewayError {
  readonly isRepeated: boolean;

  constructor(waitMs: number, isRepeated: boolean) {
    super(
      'rate_limit_exceeded',
      `Proxies of your network dial too often: ${DIALS.atOnce} dials at once and ${DIALS.perSecond} in a second are the limit`,
      { retryAfterS: Math.ceil(waitMs / 1000) },
    );
    this.isRepeated = isRepeated;
  }
}

/** The place of a connection among those of its network, with the budgets that they share. */
export interface NetworkPlace {
  readonly frames: TokenBucket;
  /**
   * Takes the work of a registration. Returns the milliseconds that it has to wait; null, and takes nothing, if that is
   * too long.
   */
  takeRegistration(document: string): number | null;
  /**
   * Takes room for the services that its provider lists from now on, instead of those before. Returns what gives it
   * back; null, and takes nothing, if there is no room for so many.
   */
  takeServices(count: number): (() => void) | null;
  leave(): void;
}

/**
 * The connections of proxies by client network, and what all connections of a network may use together. The budgets
 * outlive the connections, so that dialling again fills none. That of a provider is the same in all networks.
 */
export class ClientNetworks {
  readonly #connectionsMax: number;
  readonly #connections: Shares;
  readonly #frames: NetworkBudgets;
  readonly #dials: NetworkBudgets;
  /** Budgets of networks whose last dial was refused. */
  readonly #refused = new WeakSet<TokenBucket>();
  readonly #registrations: NetworkBudgets;
  readonly #ofProviders: NetworkBudgets;
  readonly #services: Shares;
  /** The part of `#services` that each provider has. */
  readonly #listed = new Map<string, ListedServices>();

  /** `connectionsMax`: for each network. `servicesMax` and `allMax`: services and connections of all together. */
  constructor(connectionsMax: number, now?: () => number, servicesMax = Infinity, allMax = Infinity) {
    this.#connectionsMax = connectionsMax;
    this.#connections = new Shares(allMax, connectionsMax, networkLevels);
    this.#services = new Shares(servicesMax, servicesMax, networkLevels);
    this.#frames = new NetworkBudgets(FRAME_BUDGET, now);
    this.#dials = new NetworkBudgets(DIALS, now);
    this.#registrations = new NetworkBudgets(OF_NETWORK, now);
    this.#ofProviders = new NetworkBudgets(OF_PROVIDER, now);
  }

  /** Takes a dial. Throws DialsSpent if the network has none left. */
  takeDial(network: string): void {
    const dials = this.#dials.budgetOf(network);
    const waitMs = dials.waitMs(1);
    if (waitMs > 0) {
      const isRepeated = this.#refused.has(dials);
      this.#refused.add(dials);
      throw new DialsSpent(waitMs, isRepeated);
    }
    this.#refused.delete(dials);
    dials.take(1);
  }

  /** Throws GatewayError `rate_limit_exceeded` if the network, or those around it, have their share of connections. */
  check(network: string): void {
    if (this.#connections.mayTake(network)) return;
    const count = this.#connections.amountOf(network);
    throw new GatewayError(
      'rate_limit_exceeded',
      count >= this.#connectionsMax
        ? `There are ${count} connections from your network, which is the limit`
        : `There are ${count} connections from your network, and with those of the networks around it no more fit: few are left for others`,
      { retryAfterS: 10 },
    );
  }

  /** Counts a connection until `leave`. */
  enter(network: string, provider: string): NetworkPlace {
    this.#connections.take(network);
    return {
      frames: this.#frames.budgetOf(network),
      takeRegistration: (document) => this.#takeRegistration(workOf(document), network, provider),
      takeServices: (count) => this.#takeServices(provider, { network, count }),
      leave: () => this.#connections.leave(network),
    };
  }

  /** The services of a provider are not listed any more. */
  gone(provider: string): void {
    this.#list(provider, null);
  }

  #takeServices(provider: string, listed: ListedServices): (() => void) | null {
    const before = this.#listed.get(provider) ?? null;
    this.#list(provider, null);
    const fits = this.#services.mayTake(listed.network, listed.count);
    this.#list(provider, fits ? listed : before);
    return fits ? () => this.#list(provider, before) : null;
  }

  #list(provider: string, listed: ListedServices | null): void {
    const before = this.#listed.get(provider);
    if (before) this.#services.leave(before.network, before.count);
    if (listed === null) this.#listed.delete(provider);
    else this.#listed.set(provider, listed);
    if (listed !== null) this.#services.take(listed.network, listed.count);
  }

  #takeRegistration(work: number, network: string, provider: string): number | null {
    const budgets = [this.#registrations.budgetOf(network), this.#ofProviders.budgetOf(provider)];
    const waitMs = Math.max(...budgets.map((budget) => budget.waitMs(work)));
    if (waitMs > WAIT_MS_MAX) return null;
    for (const budget of budgets) budget.take(work);
    return waitMs;
  }
}

interface ListedServices {
  readonly network: string;
  readonly count: number;
}

/** Known before anything of the document is read. Each member of an object has a colon. */
function workOf(document: string): number {
  let members = 0;
  for (let at = document.indexOf(':'); at !== -1 && members < MEMBERS_MAX; at = document.indexOf(':', at + 1))
    members++;
  return WORK_LEAST + Math.ceil(document.length / BYTES_PER_UNIT) + members;
}
