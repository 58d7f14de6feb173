import type { NodeRow } from './node-watch.ts';
import type { PresenceRow } from './presence-row.ts';
import type { Connection, Location } from './registry.ts';
import { Waiters } from './waiters.ts';

/** Which provider is connected where, in memory: the database's rows, and the connections that are open here. */
export interface Presence {
  /** A connection of this gateway that is about to join. */
  add(connection: Connection): void;
  /** A connection of this gateway ended, or could not join. False when it did not count any more. */
  remove(connection: Connection): boolean;
  has(connection: Connection): boolean;
  /**
   * Applies committed rows. Of two rows of a provider the one of the higher version counts, in any order of arrival. A
   * row up to version `seen` is ignored where its provider is not known.
   */
  apply(rows: readonly PresenceRow[], seen?: number): void;
  /** The gateways that live. */
  setNodes(nodes: readonly NodeRow[]): void;
  /** Calls onStray and onLapsed again for connections where their work may have failed. */
  recheck(): void;
  locate(provider: string): Location | null;
  waitFor(provider: string, ms: number): Promise<Location | null>;
  /** A provider that is away is no longer of interest. */
  forget(provider: string): void;
  /** Ends all waiting. */
  close(): void;
}

interface PresenceOptions {
  /** Id of this gateway. */
  readonly self: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** A provider's row changed, or whether it can be reached. `awayMs`: for how long it could not be. */
  readonly onChange: (row: PresenceRow, state: { readonly reachable: boolean; readonly awayMs: number }) => void;
  /** A provider can be reached that could not be, or over a new connection. */
  readonly onReturned: (provider: string) => void;
  /** A connection that had joined here no longer counts. */
  readonly onSuperseded: (connection: string) => void;
  /** The database says of a connection that it is open here, and it is not. */
  readonly onStray: (row: PresenceRow) => void;
  /** The database says of a connection that it ended, and it is open here. */
  readonly onLapsed: (row: PresenceRow) => void;
}

interface Entry {
  row: PresenceRow;
  location: Location | null;
  /** Since when it cannot be reached, on the monotonic clock; null while it can. */
  awaySince: number | null;
  /** Connection that the provider was last reached by. */
  reachedBy: string | null;
}

/** A connection of this gateway. */
interface Open {
  /** null until its join is known to be committed: till then nothing can be said to be newer. */
  epoch: number | null;
}

export function createPresence(options: PresenceOptions): Presence {
  const { self, now, onChange, onReturned, onSuperseded, onStray, onLapsed } = options;
  const entries = new Map<string, Entry>();
  /** Connections of this gateway, by provider and id. */
  const open = new Map<string, Map<string, Open>>();
  const waiters = new Waiters();
  let nodes = new Map<string, NodeRow>();

  const locationOf = ({ provider, connection, node, leftAt }: PresenceRow): Location | null => {
    // Also while the database has it as ended: the connection itself is the better witness.
    if (open.get(provider)?.has(connection)) return { kind: 'here', connection };
    if (leftAt !== null || node === self) return null;
    const found = nodes.get(node);
    return found && found.url !== null ? { kind: 'elsewhere', node: { id: node, url: found.url }, connection } : null;
  };

  const enter = (row: PresenceRow): Entry => {
    // The clock of another machine, so within reason only.
    const awayMs = row.leftAt === null ? 0 : Math.max(0, now() - row.leftAt);
    const entry = { row, location: null, awaySince: performance.now() - awayMs, reachedBy: null };
    entries.set(row.provider, entry);
    return entry;
  };

  const update = (entry: Entry): void => {
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

  /** Drops connections of this gateway that a newer one took the place of. */
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

  const check = ({ row }: Entry): void => {
    const isOpen = open.get(row.provider)?.has(row.connection) ?? false;
    if (row.node === self && row.leftAt === null && !isOpen) onStray(row);
    if (row.leftAt !== null && isOpen) onLapsed(row);
  };

  return {
    add(connection) {
      const { provider, id } = connection;
      const here = open.get(provider) ?? new Map<string, Open>();
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
      // Within one transaction the last row of a provider is the one that stays.
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
    forget(provider) {
      const entry = entries.get(provider);
      // While the database has it as connected its row would not be told of again.
      if (entry && entry.row.leftAt !== null && !open.has(provider)) entries.delete(provider);
    },
    close: () => waiters.close(),
  };
}
