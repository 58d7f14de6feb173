import { type Database, loadStatements } from '#store';
import { type Catalog, LATELY_MS, type Offer } from '#catalog';
import { type Ban, bumpClock, createBans, createBanStore } from './providers.ts';
import { createChangeFeed, Lease, type LeaseOptions, Poller } from './change-feed.ts';
import { createDeparted, type Departed, type DepartedOptions } from './departed.ts';
import { createGroupWrites } from './group-writes.ts';
import { createListing } from './listing.ts';
import { createPresence, presenceOf, type ProxyConnection, type Location, type Node } from './presence.ts';
import {
  createRegistrations,
  ConnectionSuperseded,
  type Registrations,
  type RegistrationsOptions,
} from './registrations.ts';

/**
 * The connections of providers to gateways, and the services that they offer. The state is in the database, so that all
 * gateways of the database agree. A change reaches all of them within half a second. Of two connections of one
 * provider, the newer wins on every gateway.
 */
export interface Registry extends Pick<Registrations, 'register' | 'registration'>, Departed {
  /**
   * Adds a new connection of this gateway. It supersedes any older connection of its provider on any gateway. `name` is
   * the provider name of its services. Rejects with RegistrationError if another provider has the name, with
   * ConnectionSuperseded if `leave` was called meanwhile, or with the database's error. After a rejection the
   * connection is not registered, an older one stays valid, and onSuperseded does not report it.
   */
  join(connection: ProxyConnection, name?: string): Promise<void>;
  /**
   * Removes a connection that ended. On this gateway it is gone at once. Its offers stay listed for the grace time,
   * marked as not present. Never rejects.
   */
  leave(connection: ProxyConnection): Promise<void>;
  /** The location of a provider. null while it is not connected. Reads only memory. */
  locate(provider: string): Location | null;
  /** Whether an offer can be called now: its endpoint is direct, or its provider is connected to any gateway. */
  isPresent(offer: Pick<Offer, 'endpoint'>): boolean;
  /** The other gateways of the database that can be reached. Reads only memory. */
  others(): readonly Node[];
  /** Resolves as soon as the provider can be reached, or with null after `ms`. */
  waitFor(provider: string, ms: number): Promise<Location | null>;
  /**
   * Settles when this gateway knows everything that was registered at any gateway before the call, or after one second.
   * Never rejects. null for a single gateway, which knows everything already.
   */
  catchUp(): Promise<void> | null;
  /**
   * Calls `listener` with the id of each connection of this gateway that a newer one, on any gateway, replaced. It is
   * called once for each connection that had joined, after its `join` has resolved. Returns a function that
   * unsubscribes.
   */
  onSuperseded(listener: (connection: string) => void): () => void;
  /**
   * Calls `listener` with each provider that becomes reachable again, or gets a new connection. Returns a function that
   * unsubscribes.
   */
  onReturned(listener: (provider: string) => void): () => void;
  /**
   * Calls `listener` with each provider whose services are not listed any more. Returns a function that unsubscribes.
   */
  onGone(listener: (provider: string) => void): () => void;
  /** Bans a provider on all gateways of the database. */
  ban(provider: string, reason: string): Promise<Ban>;
  /** False if the provider was not banned. */
  unban(provider: string): Promise<boolean>;
  /** The ban of a provider, from memory; null without one. */
  banOf(provider: string): Ban | null;
  /** Calls `listener` with each provider that is banned, at any gateway. Returns a function that unsubscribes. */
  onBanned(listener: (provider: string) => void): () => void;
  /** Applies changed reserved names to what is listed. */
  relist(): void;
  /** Increments this gateway's beat, which is a small durable write. Rejects with the database's error. */
  renew(): Promise<void>;
  /** Removes this gateway and its connections from the database, because it is about to stop. */
  close(): Promise<void>;
}

export interface RegistryOptions
  extends Pick<LeaseOptions, 'node' | 'now'>, Pick<RegistrationsOptions, 'reservedNames' | 'priceNoticeMs'> {
  readonly database: Database;
  readonly catalog: Pick<Catalog, 'replace' | 'depart'>;
  /** How long the offers of a disconnected provider stay listed. */
  readonly graceMs: number;
  /** How often PostgreSQL is polled for changes. */
  readonly pollMs?: number;
  /** A gateway that is silent for this time counts as gone. Must be many times `pollMs`. */
  readonly leaseMs?: number;
  /**
   * Called when the database fails, and then not again until it has recovered. The last known state stays in use
   * meanwhile.
   */
  readonly onError: (error: Error) => void;
  readonly onRestored?: () => void;
  readonly departed?: Pick<DepartedOptions, 'keptMax' | 'awayLeastMs' | 'everyMs'>;
}

const CONNECTIONS_SQL = loadStatements(import.meta.url, './sql/connections.sql', [
  'joinProvider',
  'leaveProvider',
  'reviveConnection',
  'leaveOrphans',
]);
const NODES_SQL = loadStatements(import.meta.url, './sql/nodes.sql', ['deleteNode', 'deletePredecessors']);

/**
 * The largest accepted difference between the clocks of gateways. Beyond it, one could list offers that another has
 * dropped.
 */
const SKEW_MS = 60_000;
/** Longest wait for the database when the gateway stops. It can be short, because the lease expires anyway. */
const CLOSE_MS = 3_000;
/** Longest wait of a lookup for a name that is unknown here. */
const CATCH_UP_MS = 1_000;

/**
 * The registry of a gateway. When it resolves, the state of all gateways has been read from the database. Rejects with
 * the database's error. Every write is one transaction that first takes the next version of the registry's clock. So
 * gateways write one after the other, and a gateway that reads the changes since a version misses none. Once the
 * database works again, failed writes are repeated from this gateway's own state.
 */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { database, node, now, graceMs, pollMs = 200, leaseMs = 6_000, onError, onRestored } = options;
  const alone = database.engine === 'sqlite';
  const supersededListeners = new Set<(connection: string) => void>();
  const returnedListeners = new Set<(provider: string) => void>();
  const bannedListeners = new Set<(provider: string) => void>();
  const goneListeners = new Set<(provider: string) => void>();
  /** Connections whose end is being written to the database. */
  const leaving = new Set<string>();
  let failing = false;
  let closed = false;

  /** A read or write of the database failed. The write may still have taken effect. */
  function failed(error: Error): void {
    feed.doubt();
    // The next poll then renews the lease, which also tests whether the database can be written to.
    lease.doubt();
    if (!failing && !closed) {
      failing = true;
      onError(error);
    }
    if (alone) poller.schedule();
  }

  async function poll(): Promise<void> {
    try {
      await feed.poll();
      if (failing && feed.isSure() && !closed) {
        failing = false;
        onRestored?.();
      }
    } catch (error) {
      failed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async function writeLeave(provider: string, connection: string): Promise<void> {
    leaving.add(connection);
    await writes
      .submit([{ statement: CONNECTIONS_SQL.leaveProvider, params: [provider, connection, now()] }])
      .catch(() => {});
    leaving.delete(connection);
  }

  const banStore = createBanStore(database, { now });
  const bans = createBans(banStore, (provider) => {
    listing.drop(provider);
    for (const listener of bannedListeners) listener(provider);
  });
  const lease = new Lease({ database, node, now, leaseMs });
  const writes = createGroupWrites({
    database,
    // Each write also renews the lease, because a connection is valid only together with the row of its gateway.
    first: () => [bumpClock(database), lease.step()],
    onCommitted(rows) {
      lease.renewed();
      // Rows with an epoch come from statements that change presence.
      if (!closed) presence.apply(rows.filter((row) => 'epoch' in row).map(presenceOf), feed.cursor());
    },
    onFailed: failed,
  });
  const listing = createListing({
    database,
    catalog: options.catalog,
    graceMs,
    isBanned: (provider) => bans.banOf(provider) !== null,
    reservedNames: options.reservedNames,
    onGone(provider) {
      presence.forget(provider);
      for (const listener of goneListeners) listener(provider);
    },
  });
  const presence = createPresence({
    self: node.id,
    now,
    onChange: ({ provider, revision }, state) => listing.set(provider, { ...state, revision }),
    onReturned(provider) {
      for (const listener of returnedListeners) listener(provider);
    },
    onSuperseded(connection) {
      // Deferred, so that the promise of `join` resolves first.
      setImmediate(() => {
        for (const listener of supersededListeners) listener(connection);
      });
    },
    onStray({ provider, connection }) {
      if (!leaving.has(connection)) void writeLeave(provider, connection);
    },
    onLapsed({ provider, connection }) {
      const stillOpen = () => presence.locate(provider)?.connection === connection;
      void writes
        .submit([{ statement: CONNECTIONS_SQL.reviveConnection, params: [provider, connection] }], stillOpen)
        .catch(() => {});
    },
  });
  const departed = createDeparted({ database, writes, now, ...options.departed });
  const registrations = createRegistrations({
    ...options,
    writes,
    listing,
    isOpen: (connection) => presence.has(connection),
  });
  const feed = createChangeFeed({ database, self: node.id, presence, listing, bans, lease, writes, now, leaseMs });
  // A single gateway makes every change itself, so it polls only after a failure.
  const goesOn = () => !alone || !feed.isSure();
  const poller = new Poller(poll, pollMs, goesOn);

  function stop(): void {
    closed = true;
    poller.stop();
    feed.close();
    presence.close();
    listing.close();
  }

  try {
    // Removes the earlier run of this gateway and its connections.
    await writes.submit([
      { statement: NODES_SQL.deletePredecessors, params: [node.id, node.url, alone ? 1 : 0] },
      { statement: CONNECTIONS_SQL.leaveOrphans, params: [now()] },
    ]);
    await feed.begin(now() - Math.max(graceMs, LATELY_MS) - SKEW_MS);
  } catch (error) {
    stop();
    throw error;
  }
  if (goesOn()) poller.schedule();

  return {
    async join(connection, name) {
      if (closed) throw stopping();
      // It was banned after its dial was admitted. Its tunnel is being closed.
      if (bans.banOf(connection.provider) !== null) throw new ConnectionSuperseded('the provider was banned');
      presence.add(connection);
      const params = [connection.provider, connection.id, node.id, now(), connection.network];
      const take = async () => {
        if (name !== undefined) await registrations.checkName(connection.provider, name);
        return writes.submit(
          [{ statement: CONNECTIONS_SQL.joinProvider, params }],
          () => !closed && presence.has(connection),
        );
      };
      const joined = await take().catch((error: unknown) => {
        presence.remove(connection);
        throw error;
      });
      if (!joined) throw closed ? stopping() : new ConnectionSuperseded('the connection ended before it could join');
      void listing.load().catch(failed);
    },
    async leave(connection) {
      if (presence.remove(connection)) await writeLeave(connection.provider, connection.id);
    },
    register: registrations.register,
    registration: registrations.registration,
    onSuperseded: (listener) => listen(supersededListeners, listener),
    onReturned: (listener) => listen(returnedListeners, listener),
    onGone: (listener) => listen(goneListeners, listener),
    async ban(provider, reason) {
      const ban = await banStore.put(provider, reason);
      await bans.load();
      return ban;
    },
    async unban(provider) {
      const wasBanned = await banStore.remove(provider);
      await bans.load();
      return wasBanned;
    },
    banOf: bans.banOf,
    onBanned: (listener) => listen(bannedListeners, listener),
    relist: () => listing.relist(),
    locate: (provider) => presence.locate(provider),
    isPresent: ({ endpoint }) => endpoint.kind === 'direct' || presence.locate(endpoint.provider) !== null,
    others: () => presence.others(),
    waitFor: (provider, ms) => presence.waitFor(provider, ms),
    catchUp() {
      if (alone || closed) return null;
      // The wait is limited, so that no lookup waits for an unreachable database. Calls wait for it only where they
      // need it.
      return Promise.race([poller.catchUp(), late(CATCH_UP_MS)]);
    },
    sweep: departed.sweep,
    forget: departed.forget,
    async renew() {
      // After close has deleted this gateway's row, nothing may write it again.
      if (!closed) await lease.renew();
    },
    async close() {
      if (closed) return;
      stop();
      const steps = [
        { statement: NODES_SQL.deleteNode, params: [node.id] },
        { statement: CONNECTIONS_SQL.leaveOrphans, params: [now()] },
      ];
      // Waits for a running poll first, because it might renew the lease and so write the row again.
      const lastWrite = Promise.resolve(poller.running)
        .then(() => writes.submit(steps))
        .catch(() => {});
      await Promise.race([lastWrite, late(CLOSE_MS)]);
    },
  };
}

const late = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());

// A plain Error and not ConnectionSuperseded, because the proxy should dial again.
const stopping = () => new Error('this gateway is about to stop');

function listen<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
