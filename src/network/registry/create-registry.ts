import { loadStatement } from '#store';
import { LATELY_MS } from '#gateway';
import { createBans, createBanStore } from './bans.ts';
import { createChangeFeed } from './change-feed.ts';
import { createConnections } from './connections.ts';
import { Lease } from './lease.ts';
import { Poller } from './poller.ts';
import type { Registry, RegistryOptions } from './registry.ts';

const DELETE_NODE = loadStatement(import.meta.url, './sql/delete-node.sql');
const DELETE_PREDECESSORS = loadStatement(import.meta.url, './sql/delete-predecessors.sql');
const LEAVE_ORPHANS = loadStatement(import.meta.url, './sql/leave-orphans.sql');

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
  let failing = false;
  let closed = false;

  function fail(error: Error): void {
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
      await feed.look();
      if (failing && feed.isSure() && !closed) {
        failing = false;
        onRestored?.();
      }
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  const banned = new Set<(provider: string) => void>();
  const banStore = createBanStore(database, { now });
  const bans = createBans(banStore, (provider) => {
    listing.drop(provider);
    for (const listener of banned) listener(provider);
  });
  const lease = new Lease({ database, node, now, leaseMs });
  const connections = createConnections({
    ...options,
    self: node.id,
    lease,
    bans,
    cursor: () => feed.cursor(),
    onFailed: fail,
  });
  const { presence, listing, writes } = connections;
  const feed = createChangeFeed({ database, self: node.id, presence, listing, bans, lease, writes, now, leaseMs });
  // A single gateway makes every change itself, so it polls only after a failure.
  const goesOn = () => !alone || !feed.isSure();
  const poller = new Poller(poll, pollMs, goesOn);

  function stop(): void {
    closed = true;
    poller.stop();
    feed.close();
    connections.close();
  }

  try {
    // Removes the earlier run of this gateway and its connections.
    await writes.submit([
      { statement: DELETE_PREDECESSORS, params: [node.id, node.url, alone ? 1 : 0] },
      { statement: LEAVE_ORPHANS, params: [now()] },
    ]);
    await feed.begin(now() - Math.max(graceMs, LATELY_MS) - SKEW_MS);
  } catch (error) {
    stop();
    throw error;
  }
  if (goesOn()) poller.schedule();

  return {
    join: connections.join,
    register: connections.register,
    leave: connections.leave,
    registration: connections.registration,
    onSuperseded: connections.onSuperseded,
    onReturned: connections.onReturned,
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
    banOf: bans.of,
    onBanned(listener) {
      banned.add(listener);
      return () => banned.delete(listener);
    },
    relist: () => listing.relist(),
    locate: (provider) => presence.locate(provider),
    waitFor: (provider, ms) => presence.waitFor(provider, ms),
    catchUp() {
      if (alone || closed) return null;
      // The wait is limited, so that no lookup waits for an unreachable database. Calls wait for it only where they
      // need it.
      return Promise.race([poller.catchUp(), late(CATCH_UP_MS)]);
    },
    async renew() {
      // After close has deleted this gateway's row, nothing may write it again.
      if (!closed) await lease.renew();
    },
    async close() {
      if (closed) return;
      stop();
      const steps = [
        { statement: DELETE_NODE, params: [node.id] },
        { statement: LEAVE_ORPHANS, params: [now()] },
      ];
      // Waits for a running poll first, because it might renew the lease and so write the row again.
      const left = Promise.resolve(poller.running)
        .then(() => writes.submit(steps))
        .catch(() => {});
      await Promise.race([left, late(CLOSE_MS)]);
    },
  };
}

const late = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
