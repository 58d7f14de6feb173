import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useProof } from '../../../account/proof.tsx';
import { call } from '../../../api/client.ts';

interface Act {
  /** Describes the change in one line, which a wallet shows to its owner. */
  readonly what: string;
  /** Makes the request with these headers, which are the proof. */
  send(headers: Readonly<Record<string, string>>): Promise<{ readonly data?: unknown }>;
}

/** Changes an organisation, after the user has given a proof. `onDone` isn't called if the user declines the proof. */
export function useAct(onDone: () => void) {
  const prove = useProof();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ what, send }: Act) => {
      const headers = await prove(what);
      if (headers === null) return null;
      return call(send(headers));
    },
    onSuccess: async (answer) => {
      if (answer === null) return;
      await Promise.all(
        ['organisations', 'members', 'limits', 'keys'].map((name) => queries.invalidateQueries({ queryKey: [name] })),
      );
      onDone();
    },
  });
}
