import type { Row } from '#store';

export type ProviderBatchState =
  | 'collecting'
  | 'ready'
  | 'uploaded'
  | 'creating'
  | 'sent'
  | 'doubted'
  | 'closing'
  | 'ended';

export interface ProviderBatch {
  readonly id: string;
  readonly offer: string;
  readonly path: string;
  state: ProviderBatchState;
  file: string | null;
  remote: string | null;
  since: number;
  refusals: number;
  /** Of its requests; 0 before they have been read. */
  bytes: number;
}

/** The states of a batch that its provider has, or may have. */
export const MAYBE_THERE: ReadonlySet<ProviderBatchState> = new Set(['creating', 'sent', 'doubted']);

export const toProviderBatch = (row: Row): ProviderBatch => ({
  id: row['id'] as string,
  offer: row['offer'] as string,
  path: row['path'] as string,
  state: row['state'] as ProviderBatchState,
  file: row['file'] as string | null,
  remote: row['remote'] as string | null,
  since: Number(row['since']),
  refusals: Number(row['refusals']),
  bytes: Number(row['bytes']),
});
