import { useMutation, useQueryClient, type UseMutationResult } from '@tanstack/react-query';
import { call, type Schemas } from '../../api/client.ts';
import { withKey } from '../../api/operator.ts';
import { useAdminKey } from './admin-key.tsx';

/** An account in the form that the operator gets. Amounts ending in `_micro_usdc` are micro-USD. */
export type Account = Schemas['Account'];

/** The key of all queries about accounts. */
export const ACCOUNTS = ['admin', 'accounts'];

export const nameOf = ({ label, id }: Account): string => label || id;

/** A name for a movement of money, for an operator who has none. The same name moves money only once. */
export const newReference = (): string => `page-${crypto.getRandomValues(new Uint8Array(6)).toHex()}`;

interface AccountChange<T> {
  /** A sentence that says what the admin key is asked for. */
  readonly confirm: string;
  /** Makes the request with these headers. */
  send(headers: { readonly authorization?: string }): Promise<{ readonly data?: { readonly data: T } }>;
}

/**
 * Changes an account after the operator has confirmed it with the admin key. `onDone` gets the member `data` of the
 * answer. The accounts are read again also after an error, because it may say that the account has changed meanwhile.
 */
export function useAccountChange<T>(
  onDone: (answer: T) => void,
): UseMutationResult<{ readonly data: T } | null, Error, AccountChange<T>> {
  const askKey = useAdminKey();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ confirm, send }: AccountChange<T>) => {
      const key = await askKey(confirm);
      if (key === null) return null;
      return call(send(withKey(key)));
    },
    onSuccess: (answer) => {
      if (answer !== null) onDone(answer.data);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ACCOUNTS }),
  });
}
