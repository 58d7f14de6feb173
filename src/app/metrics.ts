import type { Database } from '#store';
import { countHeldLocks } from '#billing';
import type { Config } from '#config';
import type { Tunnels } from '#network';
import { countLiveTasks } from '#tasks';
import { createMetrics, type Metrics } from '#observe';
import type { Mcp } from '#mcp';
import { hasPayments, type OpenPayments } from './payments.ts';

export interface MetricsRooms {
  readonly config: Config;
  readonly database: Database;
  /** Rooms that are opened later; null until then. */
  readonly tunnels: () => Tunnels | null;
  readonly tools: () => Mcp | null;
  readonly funds: () => OpenPayments | null;
  /** Ids of the offers of the configuration. */
  readonly ownOffers: () => ReadonlySet<string>;
  readonly now: () => number;
}

/** The metrics of this process, with the figures that it asks other rooms for. */
export function openMetrics({ config, database, tunnels, tools, funds, ownOffers, now }: MetricsRooms): Metrics {
  return createMetrics({
    isOwn: (id) => ownOffers().has(id),
    locksHeld: () => countHeldLocks(database),
    tunnels: () => tunnels()?.count() ?? { connections: 0, streams: 0 },
    tasksLive: () => countLiveTasks(database),
    mcp: () => tools()?.counts() ?? { sessions: 0, heldCalls: 0, listens: 0 },
    funds: hasPayments(config) ? async () => (await funds()?.figures()) ?? { chains: [], open: [] } : undefined,
    now,
  });
}
