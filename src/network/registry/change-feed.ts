import { loadStatement, type Database, type Row } from '#store';
import type { Bans } from './bans.ts';
import type { GroupWrites } from './group-writes.ts';
import type { Lease } from './lease.ts';
import type { Listing } from './listing.ts';
import { createNodeWatch, type NodeRow } from './node-watch.ts';
import type { Presence } from './presence.ts';
import { presenceOf } from './presence-row.ts';
import type { RegistryOptions } from './registry.ts';

const POLL = loadStatement(import.meta.url, './sql/poll-clock.sql');
const CHANGED = loadStatement(import.meta.url, './sql/changed-connections.sql');
const RECENT = loadStatement(import.meta.url, './sql/recent-connections.sql');
const OWN = loadStatement(import.meta.url, './sql/connections-of-node.sql');
const DELETE_SILENT_NODE = loadStatement(import.meta.url, './sql/delete-silent-node.sql');
const LEAVE_ORPHANS = loadStatement(import.meta.url, './sql/leave-orphans.sql');

interface ChangeFeedOptions {
  readonly database: Pick<Database, 'query'>;
  /** Id of this gateway. */
  readonly self: string;
  readonly presence: Presence;
  readonly listing: Pick<Listing, 'load'>;
  readonly bans: Pick<Bans, 'load'>;
  readonly lease: Lease;
  readonly writes: GroupWrites;
  readonly now: RegistryOptions['now'];
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
  look(): Promise<void>;
  /** To be called when a write may have failed. The next look compares the database with this gateway's connections. */
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
      { statement: DELETE_SILENT_NODE, params: [id, beat] },
      { statement: LEAVE_ORPHANS, params: [now()] },
    ];
    await writes.submit(steps).catch(() => {});
    ending.delete(id);
  }

  async function apply(changes: (version: number) => Promise<readonly Row[]>): Promise<void> {
    const rows = await database.query(POLL);
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
      const own = await database.query(OWN, [self]);
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
    begin: (since) => apply(() => database.query(RECENT, [since])),
    look: () => apply(async (version) => (version > cursor ? database.query(CHANGED, [cursor]) : [])),
    doubt() {
      unsure = true;
    },
    isSure: () => !unsure,
    close() {
      closed = true;
    },
  };
}
