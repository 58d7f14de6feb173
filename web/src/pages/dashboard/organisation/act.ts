import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useProof } from '../../../account/proof.tsx';
import { call } from '../../../api/request.ts';

interface Act {
  /** Describes the change in one line, which a wallet shows to its owner. */
  readonly what: string;
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly json?: unknown;
}

/** Changes an organisation, after the user has given a proof. `onDone` isn't called if the user declines the proof. */
export function useAct<T = unknown>(onDone: (answer: T) => void) {
  const prove = useProof();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ what, method, path, json }: Act) => {
      const headers = await prove(what);
      if (headers === null) return null;
      return call<T>(`/api/v1${path}`, { method, headers, ...(json === undefined ? {} : { json }) });
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await Promise.all(
        ['organisations', 'members', 'limits', 'keys'].map((name) => queries.invalidateQueries({ queryKey: [name] })),
      );
      onDone(answer);
    },
  });
}
