import type { ReactNode } from 'react';
import type { Pricing } from '../api/catalogue.ts';
import type { Kind } from './kinds.ts';
import { IN_AND_OUT, shortPrice } from './price-words.ts';
import { formatUsd } from './usd.ts';

/** A price in a column: the amount, and its unit below. For a video it is the price of the typical length. */
export function Price({
  kind,
  pricing,
  typical,
}: {
  readonly kind: Kind;
  readonly pricing: Pricing;
  readonly typical?: { readonly usd: number; readonly seconds: number | null };
}): ReactNode {
  const short = shortPrice(kind, pricing);
  const seconds = typical?.seconds ?? null;
  const { amount, unit } =
    seconds === null ? short : { amount: formatUsd(typical!.usd), unit: `for ${seconds} seconds` };
  return (
    <span className="figures inline-block text-right leading-5">
      <span className="block font-semibold whitespace-nowrap">{amount}</span>
      <span className="block text-xs whitespace-nowrap text-soft">
        {unit === IN_AND_OUT ? (
          <>
            per 1M {/* A phone leaves the room to the name of the service. */}
            <span className="max-sm:sr-only">tokens </span>in / out
          </>
        ) : (
          unit
        )}
      </span>
    </span>
  );
}
