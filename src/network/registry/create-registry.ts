import { loadStatement, type Database, type Row, type Step } from '#store';
import { type Catalog, LATELY_MS } from '#gateway';
import { createGroupWrites } from './group-writes.ts';
import { createListing } from './listing.ts';
import { createNodeWatch, type NodeRow } from './node-watch.ts';
import { createPresence } from './presence.ts';
import { presenceOf } from './presence-row.ts';
import { createRegistrations } from './registrations.ts';
import { ConnectionSuperseded, type Registry } from './registry.ts';

export interface RegistryOptions {
  readonly database: Database;
  readonly catalog: Pick<Catalog, 'replace' | 'depart'>;
  /**
   * This process. `id` is new at every start; `url` is where other gateways reach it, null for one that stands alone.
   */
  readonly node: { readonly id: string; readonly url: string | null };
  /** Epoch milliseconds, for what is stored. */
  readonly now: () => number;
  /** How long the offers of a provider that went away stay listed. */
  readonly graceMs: number;
  /** Provider names of the gateway's own configuration, which nobody may register. */
  readonly reservedNames?: readonly string[];
  /** How long calls have to accept a price that jumped; default 0, never. */
  readonly priceNoticeMs?: number;
  /** How often PostgreSQL is asked for changes. */
  readonly pollMs?: number;
  /** A gateway that is silent for so long counts as gone; many times `pollMs`. */
  readonly leaseMs?: number;
  /** The database failed: told once, until it works again. What was known last stands meanwhile. */
  readonly onError: (error: Error) => void;
  readonly onRestored?: () => void;
}

const BUMP = loadStatement(import.meta.url, './sql/bump-clock.sql');
const PG_BUMP = loadStatement(import.meta.url, './sql/pg-bump-clock.sql');
const PUT_NODE = loadStatement(import.meta.url, './sql/put-node.sql');
const DELETE_NODE = loadStatement(import.meta.url, './sql/delete-node.sql');
const DELETE_SILENT_NODE = loadStatement(import.meta.url, './sql/delete-silent-node.sql');
const DELETE_PREDECESSORS = loadStatement(import.meta.url, './sql/delete-predecessors.sql');
const LEAVE_ORPHANS = loadStatement(import.meta.url, './sql/leave-orphans.sql');
const JOIN = loadStatement(import.meta.url, './sql/join-provider.sql');
const LEAVE = loadStatement(import.meta.url, './sql/leave-provider.sql');
const REVIVE = loadStatement(import.meta.url, './sql/revive-connection.sql');
const POLL = loadStatement(import.meta.url, './sql/poll-clock.sql');
const CHANGED = loadStatement(import.meta.url, './sql/changed-connections.sql');
const RECENT = loadStatement(import.meta.url, './sql/recent-connections.sql');
const OWN = loadStatement(import.meta.url, './sql/connections-of-node.sql');

/** Renewals in the time of a lease. */
const RENEWALS = 3;
/** Clocks of gateways may differ by so much before one lists what another has long dropped. */
const SKEW_MS = 60_000;
/** Longest wait for the database when the gateway stops: leases end without it too. */
const CLOSE_MS = 3_000;
/** Longest that a name which is unknown here is looked for. */
const CATCH_UP_MS = 1_000;

/**
 * The registry of a gateway, with what the database knows of others already applied. Rejects when the database
 * cannot be reached. Every write is one transaction that first takes the next version of the registry's clock:
 * gateways write one after the other, and whoever asks for what is newer than a version misses nothing. Writes that
 * fail are repaired from what is true here once the database works.
 */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { database, node, now, graceMs, pollMs = 200, leaseMs = 6_000, onError, onRestored } = options;
  const alone = database.engine === 'sqlite';
  const startedAt = now();
  const supersededListeners = new Set<(connection: string) => void>();
  const returnedListeners = new Set<(provider: string) => void>();
  /** Connections whose end is being written. */
  const leaving = new Set<string>();
  /** Silent gateways whose end is being written. */
  const ending = new Set<string>();
  const watch = createNodeWatch({ self: node.id, leaseMs });
  /** Every change up to this version is known. */
  let cursor = 0;
  let renewedAt = -Infinity;
  let failing = false;
  /** Something that was to be written may not have been. */
  let unsure = true;
  let closed = false;

  const ignore = () => {};
  const fail = (error: Error) => {
    unsure = true;
    // The next poll is to show that the database can be written to, too.
    renewedAt = -Infinity;
    if (!failing && !closed) {
      failing = true;
      onError(error);
    }
    if (alone) schedule();
  };
  const renewal = (): Step => ({ statement: PUT_NODE, params: [node.id, node.url, now(), startedAt] });

  const writes = createGroupWrites({
    database,
    // The lease too: a connection never counts without the gateway that it is on.
    first: () => [{ statement: alone ? BUMP : PG_BUMP }, renewal()],
    onCommitted(rows) {
      renewedAt = performance.now();
      // Whatever changes presence returns it.
      if (!closed) presence.apply(rows.filter((row) => 'epoch' in row).map(presenceOf), cursor);
    },
    onFailed: fail,
  });

  const listing = createListing({
    database,
    catalog: options.catalog,
    graceMs,
    onGone: (provider) => presence.forget(provider),
  });

  const leave = async (provider: string, connection: string): Promise<void> => {
    leaving.add(connection);
    await writes.submit([{ statement: LEAVE, params: [provider, connection, now()] }]).catch(ignore);
    leaving.delete(connection);
  };

  const presence = createPresence({
    self: node.id,
    now,
    onChange: ({ provider, revision }, state) => listing.set(provider, { ...state, revision }),
    onReturned(provider) {
      for (const listener of returnedListeners) listener(provider);
    },
    onSuperseded(connection) {
      // Later: whoever waits for its join is to hear of that first.
      setImmediate(() => {
        for (const listener of supersededListeners) listener(connection);
      });
    },
    onStray({ provider, connection }) {
      if (!leaving.has(connection)) void leave(provider, connection);
    },
    onLapsed({ provider, connection }) {
      const stillOpen = () => presence.locate(provider)?.connection === connection;
      void writes.submit([{ statement: REVIVE, params: [provider, connection] }], stillOpen).catch(ignore);
    },
  });

  const registrations = createRegistrations({
    ...options,
    writes,
    listing,
    isOpen: (connection) => presence.has(connection),
  });

  const renew = async (): Promise<void> => {
    await database.query(PUT_NODE, renewal().params);
    renewedAt = performance.now();
  };

  const endSilent = async ({ id, beat }: NodeRow) => {
    if (ending.has(id)) return;
    ending.add(id);
    const steps = [
      { statement: DELETE_SILENT_NODE, params: [id, beat] },
      { statement: LEAVE_ORPHANS, params: [now()] },
    ];
    await writes.submit(steps).catch(ignore);
    ending.delete(id);
  };

  const look = async (changes: (version: number) => Promise<readonly Row[]>): Promise<void> => {
    const rows = await database.query(POLL);
    const seenAt = performance.now();
    const { live, silent } = watch.observe(rows, seenAt);
    const version = Number(rows[0]?.['version'] ?? 0);
    const changed = await changes(version);
    if (closed) return;
    presence.setNodes(live);
    const newest = changed.map(presenceOf);
    presence.apply(newest);
    cursor = newest.reduce((highest, row) => Math.max(highest, row.version), version);
    if (unsure) {
      unsure = false;
      const own = await database.query(OWN, [node.id]);
      if (closed) return;
      presence.apply(own.map(presenceOf));
      presence.recheck();
    }
    for (const each of silent) void endSilent(each);
    const missing = !live.some(({ id }) => id === node.id);
    if (!closed && (missing || seenAt - renewedAt >= leaseMs / RENEWALS)) {
      await renew();
    }
    await listing.load();
  };

  const poll = async () => {
    try {
      await look(async (version) => (version > cursor ? database.query(CHANGED, [cursor]) : []));
      if (failing && !unsure && !closed) {
        failing = false;
        onRestored?.();
      }
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
    }
    polling = null;
    if (!alone || unsure) schedule();
  };
  let timer: NodeJS.Timeout | null = null;
  let polling: Promise<void> | null = null;
  const schedule = () => {
    if (closed || timer !== null || polling !== null) return;
    timer = setTimeout(() => {
      timer = null;
      polling = poll();
    }, pollMs);
    timer.unref();
  };

  let catching: Promise<void> | null = null;
  const catchUp = async () => {
    // One that runs may have read before.
    await polling;
    if (closed) return;
    if (timer) clearTimeout(timer);
    timer = null;
    polling ??= poll();
    await polling;
  };

  const stop = () => {
    closed = true;
    if (timer) clearTimeout(timer);
    presence.close();
    listing.close();
  };

  try {
    // What ran here before is over; its connections with it.
    await writes.submit([
      { statement: DELETE_PREDECESSORS, params: [node.id, node.url, alone ? 1 : 0] },
      { statement: LEAVE_ORPHANS, params: [now()] },
    ]);
    await look(() => database.query(RECENT, [now() - Math.max(graceMs, LATELY_MS) - SKEW_MS]));
  } catch (error) {
    stop();
    throw error;
  }
  if (!alone || unsure) schedule();

  return {
    async join(connection, name) {
      if (closed) throw stopping();
      presence.add(connection);
      const params = [connection.provider, connection.id, node.id, now()];
      const take = async () => {
        if (name !== undefined) await registrations.checkName(connection.provider, name);
        return writes.submit([{ statement: JOIN, params }], () => !closed && presence.has(connection));
      };
      const joined = await take().catch((error: unknown) => {
        presence.remove(connection);
        throw error;
      });
      if (!joined) throw closed ? stopping() : new ConnectionSuperseded('the connection ended before it could join');
      void listing.load().catch(fail);
    },
    register: registrations.register,
    async leave(connection) {
      if (presence.remove(connection)) await leave(connection.provider, connection.id);
    },
    locate: (provider) => presence.locate(provider),
    waitFor: (provider, ms) => presence.waitFor(provider, ms),
    catchUp() {
      if (alone || closed) return null;
      // While the database is away nobody waits for it here: calls do so where they need it.
      const late = new Promise<void>((resolve) => setTimeout(resolve, CATCH_UP_MS).unref());
      return Promise.race([(catching ??= catchUp().finally(() => (catching = null))), late]);
    },
    registration: registrations.registration,
    async renew() {
      // After the last write of this gateway its row is to stay away.
      if (!closed) await renew();
    },
    onSuperseded: (listener) => listen(supersededListeners, listener),
    onReturned: (listener) => listen(returnedListeners, listener),
    async close() {
      if (closed) return;
      stop();
      const steps = [
        { statement: DELETE_NODE, params: [node.id] },
        { statement: LEAVE_ORPHANS, params: [now()] },
      ];
      // The poll first, which might renew the lease once more.
      const left = Promise.resolve(polling)
        .then(() => writes.submit(steps))
        .catch(ignore);
      await Promise.race([left, new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())]);
    },
  };
}

// Not to be taken for ConnectionSuperseded: the proxy is to dial again.
const stopping = () => new Error('this gateway is about to stop');

function listen<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
