import type { Database } from '#store';
import type { Service } from '#config';
import type { Catalog } from '#gateway';
import type { Prices } from './past-prices.ts';

/** A proxy's connection to this gateway. */
export interface Connection {
  /** Unique over all connections of all gateways. */
  readonly id: string;
  /** Public key of the provider. */
  readonly provider: string;
  /** Ledger account of the provider's owner, as a Caller has it. */
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
  /** Its price jumped: what it cost before, and until when (epoch milliseconds) calls have to accept the new one. */
  readonly raised?: { readonly until: number; readonly was: Prices };
}

/**
 * Which providers are connected to which gateway, and what they offer. The database holds it, so that gateways that
 * share one agree: a change is known to all within half a second, and of two connections of one provider the newer
 * wins everywhere.
 */
export interface Registry {
  /**
   * A proxy connected here: any older connection of its provider is superseded, wherever it is. Rejects with
   * RegistrationError where `name`, that of its services' provider, is another's, with the database's error, and
   * with ConnectionSuperseded when `leave` was called meanwhile; the connection then counts for nothing, an older
   * one as before, and it is not told of again.
   */
  join(connection: Connection, name?: string): Promise<void>;
  /**
   * Replaces what the provider offers. The same offers again cost no write. They are listed here when it resolves.
   * Rejects with RegistrationError where another provider has the name, with ConnectionSuperseded when a newer
   * connection took over, or with the database's error. The earlier registration then stays.
   */
  register(connection: Connection, services: readonly Service[]): Promise<{ readonly revision: number }>;
  /**
   * A connection ended. Here it counts as gone at once; its offers stay for the grace time, as not present. Never
   * rejects.
   */
  leave(connection: Connection): Promise<void>;
  /** The location of a provider; null while it is connected nowhere. One look-up in memory. */
  locate(provider: string): Location | null;
  /** Resolves as soon as the provider can be reached, or with null after `ms`. */
  waitFor(provider: string, ms: number): Promise<Location | null>;
  /**
   * Settles when this gateway knows what any other one had registered when it was called, or cannot learn it within
   * a second; never rejects. null where this gateway is alone and knows it anyway.
   */
  catchUp(): Promise<void> | null;
  /** A provider's registration from the database; null for one that never registered. */
  registration(provider: string): Promise<Registration | null>;
  /**
   * `listener` gets the id of a connection of this gateway that a newer one, on any gateway, took the place of:
   * once for each that had joined, and never before its `join` has resolved. Returns how to stop.
   */
  onSuperseded(listener: (connection: string) => void): () => void;
  /** `listener` gets the provider whose proxy can be reached again, or over a new connection. Returns how to stop. */
  onReturned(listener: (provider: string) => void): () => void;
  /** Raises this gateway's beat: a small durable write. Rejects with the database's error. */
  renew(): Promise<void>;
  /** This gateway is about to stop: its providers are to be taken as gone. */
  close(): Promise<void>;
}

/** A newer connection of the same provider counts, or this one has ended. */
export class ConnectionSuperseded extends Error {
  override readonly name = 'ConnectionSuperseded';
}

export interface RegistryOptions {
  readonly database: Database;
  readonly catalog: Pick<Catalog, 'replace' | 'depart'>;
  /**
   * This process. `id` is new at every start; `url` is where other gateways reach it, null for one that stands alone.
   */
  readonly node: { readonly id: string; readonly url: string | null };
  /** Epoch milliseconds, for the database. */
  readonly now: () => number;
  /** How long the offers of a provider that went away stay listed. */
  readonly graceMs: number;
  /** Provider names of the gateway's own configuration, which nobody may register. The list may change. */
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
