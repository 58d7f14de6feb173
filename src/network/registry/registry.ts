import type { Database } from '#store';
import type { Service } from '#config';
import type { Catalog } from '#gateway';
import type { Ban } from './bans.ts';
import type { ReservedNames } from './reserved-names.ts';
import type { Prices } from './past-prices.ts';

/** A proxy's connection to this gateway. */
export interface Connection {
  /** Unique over all connections of all gateways. */
  readonly id: string;
  /** Public key of the provider. */
  readonly provider: string;
  /** Ledger account of the provider's owner, in the same form as in Caller. */
  readonly account: string;
}

/** The gateway that a provider's proxy is connected to. */
export type Location =
  | { readonly kind: 'here'; readonly connection: string }
  | { readonly kind: 'elsewhere'; readonly node: Node; readonly connection: string };

/** Another gateway of the same database. */
export interface Node {
  readonly id: string;
  /** `https://host:port` of its listener for gateways. */
  readonly url: string;
}

/** A provider's last registration. Times are epoch milliseconds. */
interface Registration {
  readonly services: readonly RegisteredService[];
  /** Grows with every change of the services. */
  readonly revision: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** null while no proxy is connected. */
  readonly connected: { readonly since: number; readonly node: string } | null;
}

export interface RegisteredService {
  readonly service: Service;
  /** When the provider first registered a service of this primitive and name. */
  readonly createdAt: number;
  /**
   * Set if its price jumped. `was`: the prices before. `until`: epoch milliseconds until which calls must accept the
   * new price explicitly.
   */
  readonly raised?: { readonly until: number; readonly was: Prices };
}

/**
 * The connections of providers to gateways, and the services that they offer. The state is in the database, so that all
 * gateways of the database agree. A change reaches all of them within half a second. Of two connections of one
 * provider, the newer wins on every gateway.
 */
export interface Registry {
  /**
   * Adds a new connection of this gateway. It supersedes any older connection of its provider on any gateway. `name` is
   * the provider name of its services. Rejects with RegistrationError if another provider has the name, with
   * ConnectionSuperseded if `leave` was called meanwhile, or with the database's error. After a rejection the
   * connection is not registered, an older one stays valid, and onSuperseded does not report it.
   */
  join(connection: Connection, name?: string): Promise<void>;
  /**
   * Replaces the provider's services. Unchanged services cause no write. When it resolves, this gateway lists them.
   * Rejects with RegistrationError if another provider has the name, with ConnectionSuperseded if a newer connection
   * took over, or with the database's error. After a rejection the earlier registration stays.
   */
  register(connection: Connection, services: readonly Service[]): Promise<{ readonly revision: number }>;
  /**
   * Removes a connection that ended. On this gateway it is gone at once. Its offers stay listed for the grace time,
   * marked as not present. Never rejects.
   */
  leave(connection: Connection): Promise<void>;
  /** The location of a provider. null while it is not connected. Reads only memory. */
  locate(provider: string): Location | null;
  /** Resolves as soon as the provider can be reached, or with null after `ms`. */
  waitFor(provider: string, ms: number): Promise<Location | null>;
  /**
   * Settles when this gateway knows everything that was registered at any gateway before the call, or after one second.
   * Never rejects. null for a single gateway, which knows everything already.
   */
  catchUp(): Promise<void> | null;
  /** A provider's registration from the database. null if it never registered. */
  registration(provider: string): Promise<Registration | null>;
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

/** A newer connection of the same provider replaced this one, or this one has ended. */
export class ConnectionSuperseded extends Error {
  override readonly name = 'ConnectionSuperseded';
}

export interface RegistryOptions {
  readonly database: Database;
  readonly catalog: Pick<Catalog, 'replace' | 'depart'>;
  /** This process. `id` is new at every start. `url` is the address for other gateways, null for a single gateway. */
  readonly node: { readonly id: string; readonly url: string | null };
  /** Epoch milliseconds, for the database. */
  readonly now: () => number;
  /** How long the offers of a disconnected provider stay listed. */
  readonly graceMs: number;
  /** Names that no proxy may register. They may change. Default: those of the gateway itself. */
  readonly reservedNames?: ReservedNames;
  /** How long after a price jump calls must accept the new price explicitly. Default 0: never. */
  readonly priceNoticeMs?: number;
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
}
