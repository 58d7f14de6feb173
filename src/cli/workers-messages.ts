import type { ReloadReport } from '#app';
import type { MetricSnapshot } from '#observe';

/**
 * The environment variable that tells a process its number as a worker: 0, 1, … A worker that died is replaced by one
 * with the same number.
 */
export const SLOT_VARIABLE = 'TOLLGATE_WORKER';
/** The number of workers. */
export const COUNT_VARIABLE = 'TOLLGATE_WORKERS';

export type WorkerMessage =
  /** The worker listens. */
  | { readonly tollgate: 'ready'; readonly baseUrl: string }
  /** This worker was asked for the metrics of all workers. */
  | { readonly tollgate: 'scrape'; readonly id: number }
  /** Answer to `collect`. */
  | { readonly tollgate: 'metrics'; readonly id: number; readonly snapshot: readonly MetricSnapshot[] }
  /** The admin API of this worker was asked to reload all workers. */
  | { readonly tollgate: 'reload-all'; readonly id: number }
  /** Answer to `reload`. */
  | { readonly tollgate: 'reloaded'; readonly id: number; readonly outcome: ReloadOutcome };

export type SupervisorMessage =
  | { readonly tollgate: 'collect'; readonly id: number }
  /** Answer to `scrape`. */
  | { readonly tollgate: 'scraped'; readonly id: number; readonly text: string }
  /** Load this text of the configuration file. Null if there is no file, or it cannot be read. */
  | { readonly tollgate: 'reload'; readonly id: number; readonly text: string | null }
  /** Answer to `reload-all`. */
  | { readonly tollgate: 'all-reloaded'; readonly id: number; readonly outcome: ReloadOutcome };

/** `problem` is the message of the error. `isConfig`: the operator must correct the configuration. */
export type ReloadOutcome =
  | { readonly report: ReloadReport }
  | { readonly problem: string; readonly isConfig: boolean };

/**
 * Whether a message on the channel is one of tollgate's. Its shape is not checked, because both ends run the same
 * program.
 */
export function isOurs<M extends WorkerMessage | SupervisorMessage>(message: unknown): message is M {
  return typeof message === 'object' && message !== null && 'tollgate' in message;
}
