import type { Row } from '#store';

/** The row of a gateway. `url` is null if other gateways cannot reach it. */
export interface NodeRow {
  readonly id: string;
  readonly url: string | null;
  readonly beat: bigint;
}

interface NodeWatch {
  /**
   * Takes the rows of a poll at `at` (monotonic milliseconds). Returns the live gateways and those that have been
   * silent for too long.
   */
  observe(rows: readonly Row[], at: number): { readonly live: readonly NodeRow[]; readonly silent: readonly NodeRow[] };
}

/**
 * Detects dead gateways with this machine's monotonic clock. A gateway is silent if its beat has not changed for
 * `leaseMs` while this gateway kept polling. So the clocks of other machines do not matter. A gateway is not taken for
 * dead because the database or this process was suspended for a while.
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
        // If there are no gateways, the poll returns one row with a null id.
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
