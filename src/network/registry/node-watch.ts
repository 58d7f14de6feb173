import type { Row } from '#store';

/** A gateway as its row says. `url` is null for one that others cannot reach. */
export interface NodeRow {
  readonly id: string;
  readonly url: string | null;
  readonly beat: bigint;
}

interface NodeWatch {
  /**
   * Takes what a poll returned at `at` (monotonic milliseconds) and says who lives and who has been silent for too
   * long.
   */
  observe(rows: readonly Row[], at: number): { readonly live: readonly NodeRow[]; readonly silent: readonly NodeRow[] };
}

/**
 * Tells gateways that live from those that died, by this machine's own monotonic clock: a gateway is silent when
 * its beat has not changed for `leaseMs` while this one was looking. Clocks that differ between machines do not
 * matter, and nobody is taken as dead because the database, or this process, stood still for a while.
 */
export function createNodeWatch({ self, leaseMs }: { readonly self: string; readonly leaseMs: number }): NodeWatch {
  let seen = new Map<string, { readonly beat: bigint; readonly since: number }>();
  let lastAt = -Infinity;
  return {
    observe(rows, at) {
      const looking = at - lastAt < leaseMs / 2;
      lastAt = at;
      const before = seen;
      seen = new Map();
      const live: NodeRow[] = [];
      const silent: NodeRow[] = [];
      for (const row of rows) {
        // A registry without nodes has one row, without a node.
        if (row['id'] === null) continue;
        const node = { id: row['id'] as string, url: row['url'] as string | null, beat: row['beat'] as bigint };
        const known = before.get(node.id);
        const since = looking && known?.beat === node.beat ? known.since : at;
        seen.set(node.id, { beat: node.beat, since });
        (node.id !== self && at - since > leaseMs ? silent : live).push(node);
      }
      return { live, silent };
    },
  };
}
