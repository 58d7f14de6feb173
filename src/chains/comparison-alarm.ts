import type { ChainBook } from './chain-rows.ts';
import type { OnProblem } from './problem.ts';

interface ComparisonAlarmOptions {
  /** CAIP-2 ids of all configured networks. The list may grow. */
  readonly networks: readonly string[];
  readonly books: () => Promise<readonly ChainBook[]>;
  /** Milliseconds without a comparison after which the operator is alerted. */
  readonly lateMs: number;
  readonly onProblem: OnProblem;
  readonly now: () => number;
}

/**
 * Alerts the operator if books were not compared with their treasury for too long. Without comparisons, missing money
 * would go unnoticed.
 */
export interface ComparisonAlarm {
  /** Checks all networks. Reports a late network once, and once more when it is compared again. */
  check(): Promise<void>;
  /** Networks that were late at the last check. */
  late(): readonly string[];
}

export function createComparisonAlarm(options: ComparisonAlarmOptions): ComparisonAlarm {
  const { networks, books, lateMs, onProblem, now } = options;
  const begun = new Map(networks.map((network) => [network, now()]));
  const late = new Set<string>();
  return {
    async check() {
      const found = await books();
      for (const network of networks) {
        const since = begun.get(network) ?? now();
        begun.set(network, since);
        const comparedAt = found.find((book) => book.network === network)?.comparedAt ?? null;
        // A restarted gateway has just begun to compare, so the time counts from its start.
        const isLate = now() - Math.max(comparedAt ?? since, since) > lateMs;
        if (isLate === late.has(network)) continue;
        if (isLate) late.add(network);
        else late.delete(network);
        if (isLate)
          onProblem('error', 'the books of a chain were not compared with its treasury for too long', {
            network,
            since: comparedAt === null ? null : new Date(comparedAt).toISOString(),
          });
        else onProblem('info', 'the books of a chain are compared with its treasury again', { network });
      }
    },
    late: () => [...late],
  };
}
