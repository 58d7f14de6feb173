import { useQueryClient } from '@tanstack/react-query';
import { useSyncExternalStore, type ReactNode } from 'react';
import { ApiError } from '../api/api-error.ts';

/** Says on every page that what it shows is old, while the gateway does not answer. It goes when it answers again. */
export default function Unanswered(): ReactNode {
  const cache = useQueryClient().getQueryCache();
  const since = useSyncExternalStore(
    (onChange) => cache.subscribe(onChange),
    () =>
      cache.findAll({ type: 'active' }).reduce<number>((oldest, { state: { error, dataUpdatedAt } }) => {
        const isOld = dataUpdatedAt > 0 && error instanceof ApiError && error.type === 'unreachable';
        return isOld ? Math.min(oldest, dataUpdatedAt) : oldest;
      }, Infinity),
  );
  return (
    since < Infinity && (
      <p role="status" className="mb-5 rounded-lg border border-bad/40 bg-bad-wash px-4 py-2 text-sm">
        The gateway does not answer. What you see is of {new Date(since).toLocaleString('en-GB')}.
      </p>
    )
  );
}
