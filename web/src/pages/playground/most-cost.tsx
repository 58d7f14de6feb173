import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, call, type BodyOf } from '../../api/client.ts';
import { exactUsd } from '../../ui/exact-usd.ts';
import { useSignedIn } from './account-state.tsx';

/** Milliseconds without a change before the price is asked for. A quote locks nothing and counts for no rate. */
const PAUSE_MS = 500;
/** A quote is valid for five minutes. */
const FRESH_MS = 240_000;

/** The body of `POST /api/v1/quotes`. */
export type QuoteBody = BodyOf<'quoteCall'>;

/**
 * Shows what the next call costs at most, as the gateway says it. `body` is null while there is nothing to run; then
 * `otherwise` is shown. `cap`: the most that the caller lets it cost, in USD. `more`: what comes in addition.
 */
export function MostCost({
  body,
  cap = null,
  more,
  otherwise = null,
}: {
  readonly body: QuoteBody | null;
  readonly cap?: number | null;
  readonly more?: string;
  readonly otherwise?: ReactNode;
}): ReactNode {
  const { data: quote } = useQuery({
    queryKey: ['playground', 'most', body],
    enabled: useSignedIn() && body !== null,
    staleTime: FRESH_MS,
    placeholderData: keepPreviousData,
    retry: false,
    queryFn: async ({ signal }) => {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      signal.throwIfAborted();
      return call(api.POST('/api/v1/quotes', { body: body!, signal }));
    },
  });
  if (body === null || quote === undefined) return otherwise;
  if (!quote.valid) return <span className="text-bad">{quote.message}</span>;
  // With calls of its own in addition, only the cap bounds the whole.
  if (more !== undefined && cap === null)
    return (
      <>
        At most {exactUsd(quote.price_usd)} {more}
      </>
    );
  const most = more === undefined ? Math.min(quote.price_usd, cap ?? Infinity) : cap!;
  return quote.price_usd === 0 ? (
    'Free'
  ) : (
    <>
      {quote.exact === true && more === undefined ? 'Costs' : 'At most'} {exactUsd(most)}
    </>
  );
}
