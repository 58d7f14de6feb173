import type { Row } from '#store';

/** A proxy's connection to this gateway. */
export interface ProxyConnection {
  /** Unique over all connections of all gateways. */
  readonly id: string;
  /** Public key of the provider. */
  readonly provider: string;
  /** Ledger account of the provider's owner, in the same form as in Caller. */
  readonly account: string;
  /** The widest network that it was dialled from, see `networkLevels`. */
  readonly network: string;
}

/** The gateway that a provider's proxy is connected to. */
export type Location =
  | { readonly kind: 'here'; readonly connection: string }
  | { readonly kind: 'elsewhere'; readonly node: Node; readonly connection: string };

export interface Node {
  readonly id: string;
  /** `https://host:port` of its listener for gateways. */
  readonly url: string;
}

/** The row of a gateway. `url` is null if other gateways cannot reach that gateway. */
export interface NodeRow {
  readonly id: string;
  readonly url: string | null;
  readonly beat: bigint;
}

/** One row of provider_connections: the current or last connection of a provider. */
export interface PresenceRow {
  readonly provider: string;
  readonly connection: string;
  readonly node: string;
  /** The newer of two connections of a provider has the higher epoch. */
  readonly epoch: number;
  /** Epoch milliseconds by the clock of the gateway that wrote it; null while connected. */
  readonly leftAt: number | null;
  /** The revision of the provider's registration. 0 without one. */
  readonly revision: number;
  /** The version of the registry's clock at the last change of the row. */
  readonly version: number;
}

export function presenceOf(row: Row): PresenceRow {
  return {
    provider: row['provider'] as string,
    connection: row['connection'] as string,
    node: row['node'] as string,
    epoch: Number(row['epoch']),
    leftAt: row['left_at'] === null ? null : Number(row['left_at']),
    revision: Number(row['revision']),
    version: Number(row['version']),
  };
}

/**
 * The location of each provider, in memory. It combines the database's rows with the connections that are open here.
 */
export interface Presence {
  /** Adds a connection of this gateway that is about to join. */
  add(connection: ProxyConnection): void;
  /** Removes a connection of this gateway that ended or could not join. False if it was removed before. */
  remove(connection: ProxyConnection): boolean;
  has(connection: ProxyConnection): boolean;
  /**
   * Applies committed rows. For each provider the row with the highest version wins, in any order of arrival. A row of
   * an unknown provider is ignored if its version is at most `seen`.
   */
  apply(rows: readonly PresenceRow[], seen?: number): void;
  setNodes(nodes: readonly NodeRow[]): void;
  /** Calls onStray and onLapsed again, because their writes may have failed. */
  recheck(): void;
  locate(provider: string): Location | null;
  waitFor(provider: string, ms: number): Promise<Location | null>;
  others(): readonly Node[];
  /** Drops a provider that is away and no longer needed. */
  forget(provider: string): void;
  close(): void;
}

interface PresenceOptions {
  readonly self: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Called when a provider's row or its reachability changed. `awayMs`: how long it has been unreachable. */
  readonly onChange: (row: PresenceRow, state: { readonly reachable: boolean; readonly awayMs: number }) => void;
  /** Called when a provider becomes reachable, or gets a new connection. */
  readonly onReturned: (provider: string) => void;
  /** Called when a newer connection replaced one that had joined here. */
  readonly onSuperseded: (connection: string) => void;
  /** Called for a connection that is open here according to the database, but is not. */
  readonly onStray: (row: PresenceRow) => void;
  /** Called for a connection that is open here, but has ended according to the database. */
  readonly onLapsed: (row: PresenceRow) => void;
}

interface PresenceEntry {
  row: PresenceRow;
  location: Location | null;
  /** Monotonic time at which it became unreachable. null while it is reachable. */
  awaySince: number | null;
  /** The connection through which the provider was last reachable. */
  reachedBy: string | null;
}

interface OpenConnection {
  /** null until the join is known to be committed. Until then no connection counts as newer. */
  epoch: number | null;
}

export function createPresence(options: PresenceOptions): Presence {
  const { self, now, onChange, onReturned, onSuperseded, onStray, onLapsed } = options;
  const entries = new Map<string, PresenceEntry>();
  /** Connections of this gateway, by provider and id. */
  const open = new Map<string, Map<string, OpenConnection>>();
  const waiters = new Waiters();
  let nodes = new Map<string, NodeRow>();

  const locationOf = ({ provider, connection, node, leftAt }: PresenceRow): Location | null => {
    // An open connection counts even if it has ended according to the database.
    if (open.get(provider)?.has(connection)) return { kind: 'here', connection };
    if (leftAt !== null || node === self) return null;
    const row = nodes.get(node);
    return row && row.url !== null ? { kind: 'elsewhere', node: { id: node, url: row.url }, connection } : null;
  };

  const enter = (row: PresenceRow): PresenceEntry => {
    // `leftAt` may come from another machine's clock, so the result is never negative.
    const awayMs = row.leftAt === null ? 0 : Math.max(0, now() - row.leftAt);
    const entry = { row, location: null, awaySince: performance.now() - awayMs, reachedBy: null };
    entries.set(row.provider, entry);
    return entry;
  };

  const update = (entry: PresenceEntry): void => {
    const { row } = entry;
    const before = entry.location;
    const location = locationOf(row);
    entry.location = location;
    const at = performance.now();
    entry.awaySince = location === null ? (entry.awaySince ?? at) : null;
    onChange(row, { reachable: location !== null, awayMs: entry.awaySince === null ? 0 : at - entry.awaySince });
    if (location === null) return;
    if (before === null || entry.reachedBy !== location.connection) onReturned(row.provider);
    entry.reachedBy = location.connection;
    waiters.wake(row.provider, location);
  };

  /** Drops connections of this gateway that a newer one replaced. */
  const judge = (provider: string): void => {
    const entry = entries.get(provider);
    for (const [id, { epoch }] of open.get(provider) ?? []) {
      if (!entry || epoch === null || epoch >= entry.row.epoch) continue;
      discard(provider, id);
      onSuperseded(id);
    }
  };

  const discard = (provider: string, id: string): boolean => {
    const here = open.get(provider);
    const had = here?.delete(id) ?? false;
    if (here?.size === 0) open.delete(provider);
    return had;
  };

  const check = ({ row }: PresenceEntry): void => {
    const isOpen = open.get(row.provider)?.has(row.connection) ?? false;
    if (row.node === self && row.leftAt === null && !isOpen) onStray(row);
    if (row.leftAt !== null && isOpen) onLapsed(row);
  };

  return {
    add(connection) {
      const { provider, id } = connection;
      const here = open.get(provider) ?? new Map<string, OpenConnection>();
      open.set(provider, here.set(id, { epoch: null }));
    },
    remove({ provider, id }) {
      if (!discard(provider, id)) return false;
      const entry = entries.get(provider);
      if (entry) update(entry);
      return true;
    },
    has: ({ provider, id }) => open.get(provider)?.has(id) ?? false,
    apply(rows, seen = -1) {
      for (const row of rows) {
        const mine = open.get(row.provider)?.get(row.connection);
        if (mine) mine.epoch = row.epoch;
      }
      // Of several rows of a provider in one transaction, the last one is the final state.
      for (const row of new Map(rows.map((each) => [each.provider, each])).values()) {
        const known = entries.get(row.provider);
        if (!known && row.version <= seen) continue;
        const entry = known ?? enter(row);
        if (!known || row.version > known.row.version) {
          entry.row = row;
          update(entry);
        }
        judge(row.provider);
        check(entry);
      }
    },
    setNodes(live) {
      const before = nodes;
      nodes = new Map(live.map((node) => [node.id, node]));
      const changed = new Set(
        [...before.keys(), ...nodes.keys()].filter((id) => before.get(id)?.url !== nodes.get(id)?.url),
      );
      if (changed.size > 0) for (const entry of entries.values()) if (changed.has(entry.row.node)) update(entry);
    },
    recheck() {
      for (const entry of entries.values()) if (open.has(entry.row.provider)) check(entry);
    },
    locate: (provider) => entries.get(provider)?.location ?? null,
    waitFor(provider, ms) {
      const location = entries.get(provider)?.location ?? null;
      if (location !== null || ms <= 0) return Promise.resolve(location);
      return waiters.wait(provider, ms);
    },
    others: () => [...nodes.values()].flatMap(({ id, url }) => (id === self || url === null ? [] : [{ id, url }])),
    forget(provider) {
      const entry = entries.get(provider);
      // A row that is connected in the database must stay, because the change feed would not deliver it again.
      if (entry && entry.row.leftAt !== null && !open.has(provider)) entries.delete(provider);
    },
    close: () => waiters.close(),
  };
}

class Waiters {
  readonly #waiting = new Map<string, Set<(location: Location | null) => void>>();

  /** Resolves with the location that `wake` gives, or with null after `ms`. */
  wait(provider: string, ms: number): Promise<Location | null> {
    return new Promise((resolve) => {
      const waiters = this.#waiting.get(provider) ?? new Set();
      this.#waiting.set(provider, waiters);
      const wake = (location: Location | null) => {
        clearTimeout(timer);
        resolve(location);
      };
      const timer = setTimeout(() => {
        waiters.delete(wake);
        if (waiters.size === 0 && this.#waiting.get(provider) === waiters) this.#waiting.delete(provider);
        resolve(null);
      }, ms);
      waiters.add(wake);
    });
  }

  wake(provider: string, location: Location): void {
    const woken = this.#waiting.get(provider);
    this.#waiting.delete(provider);
    for (const wake of woken ?? []) wake(location);
  }

  close(): void {
    for (const waiters of this.#waiting.values()) for (const wake of waiters) wake(null);
    this.#waiting.clear();
  }
}
