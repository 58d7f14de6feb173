import { useQuery } from '@tanstack/react-query';
import { actsFor } from './acting.ts';
import { data } from './request.ts';

/* Organisations, members and limits of the API. Amounts are USD. */

export type Role = 'viewer' | 'member' | 'admin' | 'owner';
export type Reset = 'daily' | 'weekly' | 'monthly';

export interface Organisation {
  readonly account: string;
  readonly label: string;
  readonly role: Role;
}

export interface Budget {
  readonly limit: number;
  readonly limit_remaining: number;
  readonly limit_reset: Reset | null;
  readonly limit_soft: boolean;
  readonly limit_notify: readonly number[];
  readonly usage: number;
  readonly resets_at: string | null;
}

export interface Member {
  readonly account: string;
  readonly caip_account_id: string;
  readonly name: string;
  readonly role: Role;
  readonly keys: number;
  readonly usage_monthly: number;
  readonly budgets: readonly Budget[];
}

interface LimitsOf {
  readonly budgets: readonly Budget[];
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
}

export interface Limits extends LimitsOf {
  /** The limits that the operator set. */
  readonly operator: LimitsOf;
}

export interface Notice {
  readonly time: string;
  readonly of: 'key' | 'member' | 'account' | 'operator';
  readonly key?: { readonly name: string };
  readonly member?: string;
  readonly percent: number;
  readonly limit_usd: string;
  readonly limit_reset: Reset | null;
  readonly state: 'waiting' | 'told';
}

const API = '/api/v1';

export const useOrganisations = (enabled = true) =>
  useQuery({
    queryKey: ['organisations'],
    queryFn: () => data<readonly Organisation[]>(`${API}/organisations?limit=100`),
    enabled,
  });
export const useMembers = (enabled = true) =>
  useQuery({ queryKey: ['members'], queryFn: () => data<readonly Member[]>(`${API}/members`), enabled });
export const useLimits = () => useQuery({ queryKey: ['limits'], queryFn: () => data<Limits>(`${API}/limits`) });
export const useNotices = () =>
  useQuery({ queryKey: ['notices'], queryFn: () => data<readonly Notice[]>(`${API}/limits/notices`) });

/**
 * The user's role in the account that this tab acts for. null until it is known. The signed-in account is its own
 * owner.
 */
export function useOwnRole(): Role | null {
  const account = actsFor();
  const { data: found } = useOrganisations(account !== null);
  return account === null ? 'owner' : (found?.find((one) => one.account === account)?.role ?? null);
}

export const mayAdminister = (role: Role | null): boolean => role === 'owner' || role === 'admin';
