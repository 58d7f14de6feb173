import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { ApiError } from '../../../api/api-error.ts';
import { type CallDetail, findCall } from '../../../api/own.ts';
import { payerApi } from '../../../api/client.ts';

export const RECORD_KEY = ['playground', 'record'] as const;
const POLL_MS = 1_000;
/** The most times that a record is read again, because a task may wait for its caller forever. */
const POLLS_MAX = 40;

/** How often the record is asked for while the gateway is away. */
const AWAY_MS = 3_000;
const isAway = (error: unknown): boolean => error instanceof ApiError && (error.status === 0 || error.status >= 500);

/**
 * The record of a call: its ledger entries, and the calls under it. It is read again while the call runs. So new calls
 * under it appear, and the settlement of a stopped call becomes visible.
 */
export function useCallRecord(id: string | null, enabled = true): UseQueryResult<CallDetail> {
  return useQuery({
    queryKey: [...RECORD_KEY, id],
    enabled: enabled && id !== null,
    queryFn: () => findCall(id!, payerApi),
    staleTime: ({ state }) => (state.data === undefined || state.data.state === 'held' ? 0 : Infinity),
    // A gateway that does not answer now may answer later.
    refetchInterval: ({ state }) =>
      state.status === 'error'
        ? isAway(state.error) && AWAY_MS
        : state.data?.state === 'held' && state.dataUpdateCount < POLLS_MAX
          ? POLL_MS
          : false,
    retry: (failures, error) => failures < 3 && error instanceof ApiError && error.status === 404,
  });
}
