import { loadStatement } from '#store';
import type { Bans } from './bans.ts';
import { createGroupWrites, type GroupWrites } from './group-writes.ts';
import type { Lease } from './lease.ts';
import { createListing, type Listing } from './listing.ts';
import { createPresence, type Presence } from './presence.ts';
import { presenceOf } from './presence-row.ts';
import { createRegistrations } from './registrations.ts';
import { ConnectionSuperseded, type Registry, type RegistryOptions } from './registry.ts';

const BUMP = loadStatement(import.meta.url, './sql/bump-clock.sql');
const PG_BUMP = loadStatement(import.meta.url, './sql/pg-bump-clock.sql');
const JOIN = loadStatement(import.meta.url, './sql/join-provider.sql');
const LEAVE = loadStatement(import.meta.url, './sql/leave-provider.sql');
const REVIVE = loadStatement(import.meta.url, './sql/revive-connection.sql');

interface ConnectionsOptions extends Omit<RegistryOptions, 'node' | 'pollMs' | 'leaseMs' | 'onError'> {
  /** Id of this gateway. */
  readonly self: string;
  readonly lease: Lease;
  /** The version up to which every change is known. */
  readonly cursor: () => number;
  readonly bans: Pick<Bans, 'of'>;
  /** Called when a write failed. The write may still have taken effect. */
  readonly onFailed: (error: Error) => void;
}

/** Connections and registrations of providers, in memory and in the database. */
export interface Connections extends Pick<
  Registry,
  'join' | 'leave' | 'register' | 'registration' | 'onSuperseded' | 'onReturned'
> {
  readonly presence: Presence;
  readonly listing: Listing;
  readonly writes: GroupWrites;
  close(): void;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { database, self, lease, now, onFailed } = options;
  const bump = { statement: database.engine === 'sqlite' ? BUMP : PG_BUMP };
  const supersededListeners = new Set<(connection: string) => void>();
  const returnedListeners = new Set<(provider: string) => void>();
  /** Connections whose end is being written to the database. */
  const leaving = new Set<string>();
  let closed = false;

  const writes = createGroupWrites({
    database,
    // Each write also renews the lease, because a connection is valid only together with the row of its gateway.
    first: () => [bump, lease.step()],
    onCommitted(rows) {
      lease.renewed();
      // Rows with an epoch come from statements that change presence.
      if (!closed) presence.apply(rows.filter((row) => 'epoch' in row).map(presenceOf), options.cursor());
    },
    onFailed,
  });
  const listing = createListing({
    database,
    catalog: options.catalog,
    graceMs: options.graceMs,
    isBanned: (provider) => options.bans.of(provider) !== null,
    reservedNames: options.reservedNames,
    onGone: (provider) => presence.forget(provider),
  });
  const presence = createPresence({
    self,
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
      void writes.submit([{ statement: REVIVE, params: [provider, connection] }], stillOpen).catch(() => {});
    },
  });
  const registrations = createRegistrations({
    ...options,
    writes,
    listing,
    isOpen: (connection) => presence.has(connection),
  });

  async function writeLeave(provider: string, connection: string): Promise<void> {
    leaving.add(connection);
    await writes.submit([{ statement: LEAVE, params: [provider, connection, now()] }]).catch(() => {});
    leaving.delete(connection);
  }

  return {
    presence,
    listing,
    writes,
    async join(connection, name) {
      if (closed) throw stopping();
      // It was banned after its dial was admitted. Its tunnel is being closed.
      if (options.bans.of(connection.provider) !== null) throw new ConnectionSuperseded('the provider was banned');
      presence.add(connection);
      const params = [connection.provider, connection.id, self, now()];
      const take = async () => {
        if (name !== undefined) await registrations.checkName(connection.provider, name);
        return writes.submit([{ statement: JOIN, params }], () => !closed && presence.has(connection));
      };
      const joined = await take().catch((error: unknown) => {
        presence.remove(connection);
        throw error;
      });
      if (!joined) throw closed ? stopping() : new ConnectionSuperseded('the connection ended before it could join');
      void listing.load().catch(onFailed);
    },
    async leave(connection) {
      if (presence.remove(connection)) await writeLeave(connection.provider, connection.id);
    },
    register: registrations.register,
    registration: registrations.registration,
    onSuperseded: (listener) => listen(supersededListeners, listener),
    onReturned: (listener) => listen(returnedListeners, listener),
    close() {
      closed = true;
      presence.close();
      listing.close();
    },
  };
}

// A plain Error and not ConnectionSuperseded, because the proxy should dial again.
const stopping = () => new Error('this gateway is about to stop');

function listen<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
