import { loadStatements, type Database, type Row, type Step } from '#store';
import type { Bans } from './providers.ts';
import type { GroupWrites } from './group-writes.ts';
import type { ProviderListing } from './listing.ts';
import { type Presence, presenceOf, type NodeRow } from './presence.ts';

const NODES_SQL = loadStatements(import.meta.url, './sql/nodes.sql', ['pollClock', 'putNode', 'deleteSilentNode']);

const CONNECTIONS_SQL = loadStatements(import.meta.url, './sql/connections.sql', [
  'changedConnections',
  'recentConnections',
  'connectionsOfNode',
  'leaveOrphans',
]);

interface ChangeFeedOptions {
  readonly database: Pick<Database, 'query'>;
  readonly self: string;
  readonly presence: Presence;
  readonly listing: Pick<ProviderListing, 'load'>;
  readonly bans: Pick<Bans, 'load'>;
  readonly lease: Lease;
  readonly writes: GroupWrites;
  /** Epoch milliseconds, for the database. */
  readonly now: () => number;
  readonly leaseMs: number;
}

/** Reads the changes of other gateways from the database and applies them. */
interface ChangeFeed {
  /** The version of the registry's clock up to which this gateway knows every change. */
  cursor(): number;
  /**
   * Reads every connection that is open or ended after `since` (epoch milliseconds). Rejects with the database's error.
   */
  begin(since: number): Promise<void>;
  /**
   * Reads the changes since the last read, renews the lease and removes silent gateways. Rejects with the database's
   * error.
   */
  poll(): Promise<void>;
  /** Call this when a write may have failed. The next poll compares the database with this gateway's connections. */
  doubt(): void;
  isSure(): boolean;
  close(): void;
}

export function createChangeFeed(options: ChangeFeedOptions): ChangeFeed {
  const { database, self, presence, listing, bans, lease, writes, now, leaseMs } = options;
  const watch = createNodeWatch({ self, leaseMs });
  /** Silent gateways that are being removed from the database. */
  const ending = new Set<string>();
  let cursor = 0;
  let unsure = true;
  let closed = false;

  async function endSilent({ id, beat }: NodeRow): Promise<void> {
    if (ending.has(id)) return;
    ending.add(id);
    const steps = [
      { statement: NODES_SQL.deleteSilentNode, params: [id, beat] },
      { statement: CONNECTIONS_SQL.leaveOrphans, params: [now()] },
    ];
    await writes.submit(steps).catch(() => {});
    ending.delete(id);
  }

  async function apply(changes: (version: number) => Promise<readonly Row[]>): Promise<void> {
    const rows = await database.query(NODES_SQL.pollClock);
    const seenAt = performance.now();
    const { live, silent } = watch.observe(rows, seenAt);
    const version = Number(rows[0]?.['version'] ?? 0);
    // Before the presence, so that a provider that is banned is not listed.
    if (unsure || version > cursor) await bans.load();
    const changed = await changes(version);
    if (closed) return;
    presence.setNodes(live);
    const newest = changed.map(presenceOf);
    presence.apply(newest);
    cursor = newest.reduce((highest, row) => Math.max(highest, row.version), version);
    if (unsure) {
      unsure = false;
      const own = await database.query(CONNECTIONS_SQL.connectionsOfNode, [self]);
      if (closed) return;
      presence.apply(own.map(presenceOf));
      presence.recheck();
    }
    for (const each of silent) void endSilent(each);
    const missing = !live.some(({ id }) => id === self);
    if (!closed && (missing || lease.isDue(seenAt))) await lease.renew();
    await listing.load();
  }

  return {
    cursor: () => cursor,
    begin: (since) => apply(() => database.query(CONNECTIONS_SQL.recentConnections, [since])),
    poll: () =>
      apply(async (version) => (version > cursor ? database.query(CONNECTIONS_SQL.changedConnections, [cursor]) : [])),
    doubt() {
      unsure = true;
    },
    isSure: () => !unsure,
    close() {
      closed = true;
    },
  };
}

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

/** Renewals within the duration of a lease. */
const RENEWALS = 3;

export interface LeaseOptions {
  /** This process. `id` is new at every start. `url` is the address for other gateways, null for a single gateway. */
  readonly node: { readonly id: string; readonly url: string | null };
  /** Epoch milliseconds, for the database. */
  readonly now: () => number;
  readonly database: Pick<Database, 'query'>;
  readonly leaseMs: number;
}

/** This gateway's row in the table of gateways, and the time of its last write. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #startedAt: number;
  #renewedAt = -Infinity;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#startedAt = options.now();
  }

  /** A step that renews the lease by incrementing its beat. Call `renewed` after the commit of its transaction. */
  step(): Step & { readonly params: readonly (string | number | null)[] } {
    const { node, now } = this.#options;
    return { statement: NODES_SQL.putNode, params: [node.id, node.url, now(), this.#startedAt] };
  }

  renewed(): void {
    this.#renewedAt = performance.now();
  }

  /** Increments the beat. Rejects with the database's error. */
  async renew(): Promise<void> {
    await this.#options.database.query(NODES_SQL.putNode, this.step().params);
    this.renewed();
  }

  /** Makes the next beat due at once, because the database may lack the last one. */
  doubt(): void {
    this.#renewedAt = -Infinity;
  }

  /** `at`: monotonic milliseconds. */
  isDue(at: number): boolean {
    return at - this.#renewedAt >= this.#options.leaseMs / RENEWALS;
  }
}

interface NodeWatch {
  /**
   * Takes the rows of a poll at `at` (monotonic milliseconds). Returns the live gateways and those that have been
   * silent for too long.
   */
  observe(rows: readonly Row[], at: number): { readonly live: readonly NodeRow[]; readonly silent: readonly NodeRow[] };
}

/**
 * Detects dead gateways with this machine's monotonic clock. A gateway is silent if its beat has not changed for
 * `leaseMs` while this gateway kept polling. So the clocks of other machines do not matter. A gateway is not taken for
 * dead because the database or this process was suspended for a while.
 */
export function createNodeWatch({ self, leaseMs }: { readonly self: string; readonly leaseMs: number }): NodeWatch {
  let seen = new Map<string, { readonly beat: bigint; readonly since: number }>();
  let lastAt = -Infinity;
  return {
    observe(rows, at) {
      const looking = at - lastAt < leaseMs / 2;
      lastAt = at;
      const before = seen;
      seen = new Map();
      const live: NodeRow[] = [];
      const silent: NodeRow[] = [];
      for (const row of rows) {
        // If there are no gateways, the poll returns one row with a null id.
        if (row['id'] === null) continue;
        const node = { id: row['id'] as string, url: row['url'] as string | null, beat: row['beat'] as bigint };
        const known = before.get(node.id);
        const since = looking && known?.beat === node.beat ? known.since : at;
        seen.set(node.id, { beat: node.beat, since });
        (node.id !== self && at - since > leaseMs ? silent : live).push(node);
      }
      return { live, silent };
    },
  };
}
