import { useMutation, useQueryClient, type UseMutationResult } from '@tanstack/react-query';
import { change } from '../../api/operator.ts';
import { useAdminKey } from './admin-key.tsx';

/** An account in the form that the operator gets. Amounts ending in `_micro_usdc` are micro-USD. */
export interface Account {
  readonly id: string;
  readonly label: string;
  readonly created_at: string;
  readonly balance_micro_usdc: number;
  readonly locked_micro_usdc: number;
  readonly state: 'open' | 'frozen' | 'closed';
  /** Why the operator changed the state last. */
  readonly state_reason: string;
}

/** The key of all queries about accounts. */
export const ACCOUNTS = ['admin', 'accounts'];

export const nameOf = ({ label, id }: Account): string => label || id;

/** A name for a movement of money, for an operator who has none. The same name moves money only once. */
export const newReference = (): string => `page-${crypto.getRandomValues(new Uint8Array(6)).toHex()}`;

interface AccountChange {
  /** A sentence that says what the admin key is asked for. */
  readonly confirm: string;
  readonly method?: 'POST' | 'PATCH';
  /** The path below the account, such as `/freeze`. */
  readonly path: string;
  readonly body: Readonly<Record<string, string | number>>;
}

/**
 * Changes an account after the operator has confirmed it with the admin key. `onDone` gets the member `data` of the
 * answer. The accounts are read again also after an error, because it may say that the account has changed meanwhile.
 */
export function useAccountChange<T>(
  account: Account,
  onDone: (answer: T) => void,
): UseMutationResult<{ readonly data: T } | null, Error, AccountChange> {
  const askKey = useAdminKey();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ confirm, method = 'POST', path, body }: AccountChange) => {
      const key = await askKey(confirm);
      if (key === null) return null;
      return change<{ readonly data: T }>(key, method, `/accounts/${encodeURIComponent(account.id)}${path}`, body);
    },
    onSuccess: (answer) => {
      if (answer !== null) onDone(answer.data);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ACCOUNTS }),
  });
}
