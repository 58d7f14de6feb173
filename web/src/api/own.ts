import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { Kind } from '../ui/kinds.ts';
import { call, data } from './request.ts';

/* The account's own part of the API. Times are RFC 3339. */

export interface Balance {
  readonly balance_micro_usdc: number;
  /** Locked by running calls. */
  readonly locked_micro_usdc: number;
}

/** One call in the form of the list. */
export interface CallRow {
  readonly id: string;
  readonly state: 'held' | 'settled' | 'released' | 'expired';
  /** Whether its task asks for input. */
  readonly waiting?: boolean;
  readonly outcome: string | null;
  readonly primitive: Kind;
  readonly model: string;
  readonly service: string;
  readonly tool: string | null;
  readonly provider: string | null;
  readonly provider_name: string | null;
  readonly api_key: string | null;
  readonly request_id: string;
  readonly streamed: boolean;
  readonly tokens_prompt: number;
  readonly tokens_completion: number;
  readonly usage_details: Readonly<Record<string, number>>;
  readonly cost_micro_usdc: number;
  readonly fee_micro_usdc: number;
  readonly latency: number | null;
  readonly generation_time: number | null;
  readonly finish_reason: string | null;
  readonly estimated: boolean;
  readonly error: string | null;
  readonly flags: readonly string[];
  readonly parent: string | null;
  readonly created_at: string;
  readonly resolved_at: string | null;
}

/** One call with its ledger entries and the calls under it. */
export interface CallDetail extends CallRow {
  readonly account: string;
  readonly price: string | null;
  readonly entries: readonly { readonly type: string; readonly amount_micro_usdc: number; readonly at: string }[];
  /** A compact JWS. null for a call that was not charged. */
  readonly receipt: string | null;
  /** USD for this call and all calls under it. */
  readonly run_cost: number;
  readonly children: readonly CallDetail[];
}

export interface CallsPage {
  readonly data: readonly CallRow[];
  readonly next_cursor: string | null;
}

export interface ApiKey {
  readonly hash: string;
  readonly label: string;
  /** The member of an organisation that owns the key. null for a key of the account itself. */
  readonly member: string | null;
  readonly disabled: boolean;
  /** USD in each period. null means no limit. */
  readonly limit: number | null;
  readonly limit_remaining: number | null;
  readonly limit_reset: 'daily' | 'weekly' | 'monthly' | null;
  /** USD in total, whatever the limit counts. */
  readonly usage: number;
  readonly usage_monthly: number;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly allowed_services: readonly string[] | null;
  readonly development: boolean;
}

export interface Chain {
  readonly network: string;
  readonly asset: string;
  readonly treasury: string | null;
  readonly answers: boolean;
  readonly min_topup_micro_usdc: number;
  readonly topup_max_micro_usdc: number;
  readonly withdrawal_min_micro_usdc: number;
  readonly withdrawal_fee_micro_usdc: number;
  /** The additional fee if the wallet has no token account yet. */
  readonly token_account_fee_micro_usdc: number;
  readonly withdrawal_daily_max_micro_usdc: number;
}

export interface Deposit {
  readonly id: string;
  readonly status: 'pending' | 'credited' | 'final' | 'failed' | 'reversed';
  readonly network: string;
  readonly payer: string;
  readonly amount_micro_usdc: number;
  readonly credited_micro_usdc: number | null;
  readonly transaction: string | null;
  readonly reason: string | null;
  readonly created_at: string;
}

export interface Withdrawal {
  readonly id: string;
  readonly status: 'pending' | 'processing' | 'paid' | 'canceled' | 'returned' | 'refused';
  readonly network: string;
  readonly address: string;
  readonly source: 'balance' | 'earnings' | 'fees' | 'treasury';
  readonly amount_micro_usdc: number;
  /** The amount minus the fee. */
  readonly pays_micro_usdc: number;
  readonly transaction: string | null;
  readonly reason: string | null;
  readonly created_at: string;
}

/** Money that came into the account or left it, besides calls. */
export interface Movement {
  readonly id: string;
  readonly kind: 'credit' | 'debit' | 'closing' | 'deposit' | 'withdrawal' | 'withdrawal_returned' | 'other';
  /** Negative if it was taken from the account. */
  readonly amount_micro_usdc: number;
  readonly reference: string | null;
  readonly reason: string | null;
  readonly created_at: string;
}

export interface BoundWallet {
  readonly wallet: string;
  readonly address: string;
  readonly bound_at: string;
  readonly paid_from: string;
}

/** The figures of one group of calls. Members that the request doesn't group by are missing. */
export interface OwnFigures {
  readonly date?: string;
  readonly model?: string;
  readonly key?: string | null;
  readonly key_label?: string | null;
  readonly provider?: string | null;
  readonly provider_name?: string | null;
  readonly primitive?: Kind;
  readonly requests: number;
  readonly failed: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly images: number;
  readonly seconds: number;
  readonly cost_micro_usdc: number;
}

interface OwnAnalytics {
  readonly data: readonly OwnFigures[];
  readonly totals: OwnFigures;
  readonly as_of: string | null;
}

const API = '/api/v1';
/** Balance and calls change while the page is open. */
const LIVELY = { refetchInterval: 15_000, staleTime: 5_000 } as const;

export const useBalance = () =>
  useQuery({ queryKey: ['balance'], queryFn: () => call<Balance>(`${API}/session/balance`), ...LIVELY });

const FIRST_PAGE: { readonly cursor?: string } = {};

/** Calls, newest first, in pages. `filters` are parameters of the query. */
export const useCalls = (filters: Readonly<Record<string, string>>, limit = 25) =>
  useInfiniteQuery({
    queryKey: ['calls', filters, limit],
    queryFn: ({ pageParam }) =>
      call<CallsPage>(`${API}/generations?${callsQuery({ ...filters, ...pageParam }, limit)}`),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ next_cursor }) => (next_cursor === null ? null : { cursor: next_cursor }),
    placeholderData: keepPreviousData,
    ...LIVELY,
  });

/** The query string of a list of calls. Empty filters are omitted. */
export function callsQuery(filters: Readonly<Record<string, string>>, limit?: number): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''));
  if (limit !== undefined) query.set('limit', String(limit));
  return query.toString();
}

export const useCall = (id: string) =>
  useQuery({
    queryKey: ['call', id],
    queryFn: () => data<CallDetail>(`${API}/generation?id=${encodeURIComponent(id)}`),
    // A running call is requested again until it has ended.
    refetchInterval: ({ state }) => (state.data?.state === 'held' ? 2_000 : false),
  });

/** All keys of the account, up to 1,000. */
export const useKeys = () => useQuery({ queryKey: ['keys'], queryFn: findKeys });

const KEYS_PAGE = 100;
const KEYS_MAX = 1_000;

async function findKeys(): Promise<readonly ApiKey[]> {
  const found: ApiKey[] = [];
  for (let offset = 0; offset < KEYS_MAX; offset += KEYS_PAGE) {
    // oxlint-disable-next-line no-await-in-loop -- a full page says that there may be another
    const page = await data<readonly ApiKey[]>(`${API}/keys?limit=${KEYS_PAGE}&offset=${offset}`);
    found.push(...page);
    if (page.length < KEYS_PAGE) break;
  }
  return found;
}

export const useChains = () =>
  useQuery({
    queryKey: ['chains'],
    queryFn: () => data<readonly Chain[]>(`${API}/payments/chains`),
    staleTime: 5 * 60_000,
  });

interface FundsPage<T> {
  readonly data: readonly T[];
  /** The value of `before` for the next page. null at the end. */
  readonly next: string | null;
}

/** A list of movements of money, newest first, in pages. */
const useFunds = <T>(name: 'deposits' | 'withdrawals' | 'movements') =>
  useInfiniteQuery({
    queryKey: [name],
    queryFn: ({ pageParam }) =>
      call<FundsPage<T>>(`${API}/${name}${pageParam === '' ? '' : `?before=${encodeURIComponent(pageParam)}`}`),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
    ...LIVELY,
  });

/** Deposits and withdrawals over chains exist only if the gateway has chains. */
export const useDeposits = () => useFunds<Deposit>('deposits');
export const useWithdrawals = () => useFunds<Withdrawal>('withdrawals');
export const useMovements = () => useFunds<Movement>('movements');

/** Wallets exist only if the gateway has chains. */
export const useBoundWallets = (enabled: boolean) =>
  useQuery({ queryKey: ['wallets'], queryFn: () => data<readonly BoundWallet[]>(`${API}/wallets`), enabled });

/** The account's own figures by groups, such as `day,model`, since a UTC day. */
export const useOwnAnalytics = (groups: string, from: string) =>
  useQuery({
    queryKey: ['own-analytics', groups, from],
    queryFn: () => call<OwnAnalytics>(`${API}/analytics/own?group_by=${groups}&start_date=${from}`),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });

const DAY_MS = 86_400_000;

/** The UTC day `daysAgo` days ago: `2026-11-21`. */
export const utcDay = (daysAgo: number): string => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10);
