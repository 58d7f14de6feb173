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
  | { readonly tollgate: 'metrics'; readonly id: number; readonly snapshot: readonly MetricSnapshot[] };

export type SupervisorMessage =
  | { readonly tollgate: 'collect'; readonly id: number }
  /** Answer to `scrape`. */
  | { readonly tollgate: 'scraped'; readonly id: number; readonly text: string };

/** Ours among what comes over the channel; both ends run the same program. */
export function isOurs<M extends WorkerMessage | SupervisorMessage>(message: unknown): message is M {
  return typeof message === 'object' && message !== null && 'tollgate' in message;
}
