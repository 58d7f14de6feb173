import { useQuery } from '@tanstack/react-query';
import { actsFor } from './acting.ts';
import { type AnswerOf, api, data, ownApi, type Schemas } from './client.ts';

/* Organisations, members and limits of the API. Amounts are USD. */

export type Organisation = Schemas['Organisation'];
export type Member = Schemas['Member'];
export type Budget = Schemas['Budget'];
/** The limits of the account, and under `operator` those that the operator set. */
export type Limits = Schemas['OwnLimits'];
export type Notice = AnswerOf<'listTheNoticesOfYourBudgets'>['data'][number];
export type Role = Member['role'];
export type Reset = NonNullable<Budget['limit_reset']>;

export const useOrganisations = (enabled = true) =>
  useQuery({
    queryKey: ['organisations'],
    queryFn: () => data(api.GET('/api/v1/organisations', { params: { query: { limit: 100 } } })),
    enabled,
  });
/** The same for the signed-in account, even if this tab acts for one of them. */
export const useOwnOrganisations = (enabled = true) =>
  useQuery({
    queryKey: ['own-organisations'],
    queryFn: () => data(ownApi.GET('/api/v1/organisations', { params: { query: { limit: 100 } } })),
    enabled,
  });
export const organisationName = ({ label, account }: Organisation): string =>
  label === '' ? (account.split(':').at(-1) ?? account) : label;
/** Whether a member may have keys. */
export const mayCall = (role: Role): boolean => role !== 'viewer';
export const useMembers = (enabled = true) =>
  useQuery({ queryKey: ['members'], queryFn: () => data(api.GET('/api/v1/members')), enabled });
export const useLimits = () => useQuery({ queryKey: ['limits'], queryFn: () => data(api.GET('/api/v1/limits')) });
export const useNotices = () =>
  useQuery({ queryKey: ['notices'], queryFn: () => data(api.GET('/api/v1/limits/notices')) });

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
