import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { Kind } from '../ui/kinds.ts';
import { type AnswerOf, api, call, data, type Schemas } from './client.ts';

/* The account's own part of the API. Times are RFC 3339. */

/** One call in the form of the list. */
export type CallRow = Omit<Schemas['Call'], 'primitive'> & { readonly primitive: Kind };
/** One call with its ledger entries and the calls under it. */
export type CallDetail = Omit<Schemas['Generation'], 'primitive' | 'receipt' | 'children'> & {
  readonly primitive: Kind;
  /** A compact JWS. null for a call that was not charged. */
  readonly receipt: string | null;
  readonly children: readonly CallDetail[];
};
interface CallsPage {
  readonly data: readonly CallRow[];
  readonly next_cursor: string | null;
}
export type ApiKey = Schemas['ApiKey'];
export type Chain = AnswerOf<'listTheChainsThatCanBePaidOver'>['data'][number];
export type Deposit = Schemas['Deposit'];
export type Withdrawal = Schemas['Withdrawal'];
/** Money that came into the account or left it, besides calls. */
export type Movement = Schemas['Movement'];
export type BoundWallet = Schemas['Wallet'];
/** The figures of one group of calls. Members that the request doesn't group by are missing. */
export type OwnFigures = AnswerOf<'ownAnalytics'>['data'][number];

/** Balance and calls change while the page is open. */
const LIVELY = { refetchInterval: 15_000, staleTime: 5_000 } as const;

export const useBalance = () =>
  useQuery({ queryKey: ['balance'], queryFn: () => call(api.GET('/api/v1/session/balance')), ...LIVELY });

const FIRST_PAGE: { readonly cursor?: string } = {};

/** Filters of a list of calls, as addresses of pages have them. Empty ones are omitted. */
type CallFilters = Readonly<Record<string, string>>;

/** Calls, newest first, in pages. `filters` are parameters of the query. */
export const useCalls = (filters: CallFilters, limit = 25) =>
  useInfiniteQuery({
    queryKey: ['calls', filters, limit],
    queryFn: ({ pageParam }) => findCalls({ ...filters, ...pageParam, limit }),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ next_cursor }) => (next_cursor === null ? null : { cursor: next_cursor }),
    placeholderData: keepPreviousData,
    ...LIVELY,
  });

/** A page of the calls. The gateway writes the kind of every call that it records. */
export const findCalls = async (query: Readonly<Record<string, string | number>>): Promise<CallsPage> =>
  (await call(api.GET('/api/v1/generations', { params: { query } }))) as CallsPage;

/** A call with what is under it. `of` is the client, for the account whose calls are looked at. */
export const findCall = async (id: string, of = api): Promise<CallDetail> =>
  (await data(of.GET('/api/v1/generation', { params: { query: { id } } }))) as object as CallDetail;

export const useCall = (id: string) =>
  useQuery({
    queryKey: ['call', id],
    queryFn: () => findCall(id),
    // A running call is requested again until it has ended.
    refetchInterval: ({ state }) => (state.data?.state === 'held' ? 2_000 : false),
  });

/** All keys of the account, up to 1,000. */
/** `refetchInterval`: milliseconds after which they are read again, for a page that waits for a new one. */
export const useKeys = (refetchInterval?: number) =>
  useQuery({ queryKey: ['keys'], queryFn: findKeys, ...(refetchInterval === undefined ? {} : { refetchInterval }) });

const KEYS_PAGE = 100;
const KEYS_MAX = 1_000;

async function findKeys(): Promise<readonly ApiKey[]> {
  const found: ApiKey[] = [];
  for (let offset = 0; offset < KEYS_MAX; offset += KEYS_PAGE) {
    const page = await data(api.GET('/api/v1/keys', { params: { query: { limit: KEYS_PAGE, offset } } }));
    found.push(...page);
    if (page.length < KEYS_PAGE) break;
  }
  return found;
}

export const useChains = () =>
  useQuery({
    queryKey: ['chains'],
    queryFn: () => data(api.GET('/api/v1/payments/chains')),
    staleTime: 5 * 60_000,
  });

/** A list of movements of money, newest first, in pages. `before` is the `next` of the page before. */
const useFunds = <T extends { readonly next: string | null }>(name: string, page: (before: Before) => Promise<T>) =>
  useInfiniteQuery({
    queryKey: [name],
    queryFn: ({ pageParam }) => page({ params: { query: { before: pageParam } } }),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
    ...LIVELY,
  });
type Before = { readonly params: { readonly query: { readonly before: string } } };

/** Deposits and withdrawals over chains exist only if the gateway has chains. */
export const useDeposits = () => useFunds('deposits', (before) => call(api.GET('/api/v1/deposits', before)));
export const useWithdrawals = () => useFunds('withdrawals', (before) => call(api.GET('/api/v1/withdrawals', before)));
export const useMovements = () => useFunds('movements', (before) => call(api.GET('/api/v1/movements', before)));

/** Wallets exist only if the gateway has chains. */
export const useBoundWallets = (enabled: boolean) =>
  useQuery({ queryKey: ['wallets'], queryFn: () => data(api.GET('/api/v1/wallets')), enabled });

/** The account's own figures by groups, such as `day,model`, of UTC days. Without `last` until today. */
export const useOwnAnalytics = (groups: string, first: string, last?: string) =>
  useQuery({
    queryKey: ['own-analytics', groups, first, last],
    queryFn: () =>
      call(
        api.GET('/api/v1/analytics/own', {
          params: { query: { group_by: groups, start_date: first, ...(last === undefined ? {} : { end_date: last }) } },
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });

const DAY_MS = 86_400_000;

/** The UTC day `daysAgo` days ago: `2026-11-21`. */
export const utcDay = (daysAgo: number): string => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10);
