import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { ApiError } from '../../../api/api-error.ts';
import { data } from '../../../api/request.ts';
import type { Kind } from '../../../ui/kind.tsx';

/** The record of a call: what moved in the ledger, and the calls under it. */
export interface CallRecord {
  readonly id: string;
  /** `held` while the call goes on. */
  readonly state: 'held' | 'settled' | 'released';
  readonly primitive: Kind;
  readonly service: string;
  readonly tool: string | null;
  readonly provider_name: string | null;
  readonly cost_micro_usdc: number;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  /** Milliseconds. */
  readonly generation_time: number | null;
  readonly error: string | null;
  /** USD, with the calls under it. */
  readonly run_cost: number;
  readonly entries: readonly {
    readonly type: 'lock' | 'settle' | 'lend' | 'refund' | 'fee' | (string & {});
    readonly amount_micro_usdc: number;
    readonly at: string;
  }[];
  readonly receipt: string | null;
  readonly children: readonly CallRecord[];
}

export const RECORD_KEY = ['playground', 'record'] as const;
const LOOK_MS = 1_000;
/** A task that waits for its caller is not looked at for ever. */
const LOOKS_MAX = 40;

/**
 * The record of a call. It is asked for again while the call goes on, so that calls under it are seen as they come and
 * a call that was stopped is seen to be settled.
 */
export function useCallRecord(id: string | null, enabled = true): UseQueryResult<CallRecord> {
  return useQuery({
    queryKey: [...RECORD_KEY, id],
    enabled: enabled && id !== null,
    queryFn: () => data<CallRecord>(`/api/v1/generation?id=${encodeURIComponent(id!)}`),
    staleTime: ({ state }) => (state.data === undefined || state.data.state === 'held' ? 0 : Infinity),
    refetchInterval: ({ state }) =>
      state.data?.state === 'held' && state.dataUpdateCount < LOOKS_MAX ? LOOK_MS : false,
    retry: (failures, error) => failures < 3 && error instanceof ApiError && error.status === 404,
  });
}
