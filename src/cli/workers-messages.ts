import type { ReloadReport } from '#app';
import type { MetricSnapshot } from '#observe';

/**
 * Environment variable by which a process learns that it is a worker, and which one: 0, 1, … A worker that died is
 * replaced by one of the same number.
 */
export const SLOT_VARIABLE = 'TOLLGATE_WORKER';

export type WorkerMessage =
  /** It listens. */
  | { readonly tollgate: 'ready'; readonly baseUrl: string }
  /** The metrics of all workers are asked for here. */
  | { readonly tollgate: 'scrape'; readonly id: number }
  /** Answer to `collect`. */
  | { readonly tollgate: 'metrics'; readonly id: number; readonly snapshot: readonly MetricSnapshot[] }
  /** All workers are to reload, as the admin API was asked here. */
  | { readonly tollgate: 'reload-all'; readonly id: number }
  /** Answer to `reload`. */
  | { readonly tollgate: 'reloaded'; readonly id: number; readonly outcome: ReloadOutcome };

export type SupervisorMessage =
  | { readonly tollgate: 'collect'; readonly id: number }
  /** Answer to `scrape`. */
  | { readonly tollgate: 'scraped'; readonly id: number; readonly text: string }
  /** Take this text of the configuration file; null where there is no file, or it cannot be read. */
  | { readonly tollgate: 'reload'; readonly id: number; readonly text: string | null }
  /** Answer to `reload-all`. */
  | { readonly tollgate: 'all-reloaded'; readonly id: number; readonly outcome: ReloadOutcome };

/** `problem` is the message of a ConfigError, or of another failure. */
export type ReloadOutcome =
  | { readonly report: ReloadReport }
  | { readonly problem: string; readonly isConfig: boolean };

/** Ours among what comes over the channel; both ends run the same program. */
export function isOurs<M extends WorkerMessage | SupervisorMessage>(message: unknown): message is M {
  return typeof message === 'object' && message !== null && 'tollgate' in message;
}
