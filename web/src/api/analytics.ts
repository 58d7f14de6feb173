import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { BOOT } from '../app/boot.ts';
import type { Kind } from '../ui/kinds.ts';
import type { MarketFigures, ServiceFigures } from './figures.ts';
import { api, call, data } from './client.ts';

/** The last `days` UTC days as `YYYY-MM-DD`, including today. */
function lastDays(days: number): { readonly start_date: string; readonly end_date: string } {
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  return { start_date: day(days - 1), end_date: day(0) };
}

/** The market's figures of the last 7 days and today, which is the API's default range. */
export const useWeek = (): UseQueryResult<MarketFigures> =>
  useQuery({
    queryKey: ['analytics', 'week'],
    queryFn: () => call(api.GET('/api/v1/analytics/public')),
    enabled: BOOT.analytics,
  });

export const useMarketFigures = (days: number): UseQueryResult<MarketFigures> =>
  useQuery({
    queryKey: ['analytics', 'public', days],
    queryFn: () => call(api.GET('/api/v1/analytics/public', { params: { query: lastDays(days) } })),
    enabled: BOOT.analytics,
    // Keeps the figures of the previous range on the page until the new ones arrive.
    placeholderData: (shown) => shown,
  });

/**
 * Charged calls of 30 days by kind and name: `model/demo/chat`. Services without calls and services with hidden figures
 * are missing.
 */
export const useCallCounts = (): UseQueryResult<ReadonlyMap<string, number>> =>
  useQuery({
    queryKey: ['analytics', 'services'],
    queryFn: async () => {
      const rows = await data(api.GET('/api/v1/analytics/service'));
      return new Map(rows.map(({ primitive, service, requests }) => [`${primitive}/${service}`, requests]));
    },
    enabled: BOOT.analytics,
  });

export const useServiceFigures = (kind: Kind, name: string): UseQueryResult<ServiceFigures> =>
  useQuery({
    queryKey: ['analytics', 'service', kind, name],
    queryFn: () => data(api.GET('/api/v1/analytics/service/{name}', { params: { path: { name: `${kind}/${name}` } } })),
    enabled: BOOT.analytics,
  });
