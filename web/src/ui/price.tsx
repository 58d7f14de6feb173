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
    // Its width is that of its text, up to a limit at which it wraps: the rest of a row is for the name.
    <span className="figures inline-block w-max max-w-28 leading-5 text-balance sm:max-w-40">
      <span className="block font-semibold">{amount}</span>
      <span className="block text-xs text-soft">
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
