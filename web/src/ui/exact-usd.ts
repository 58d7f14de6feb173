const MICRO = 1_000_000;
const CENTS = 2;
const PLACES = 6;
const USD = { style: 'currency', currency: 'USD' } as const;
const EXACT = new Intl.NumberFormat('en-US', { ...USD, minimumFractionDigits: CENTS, maximumFractionDigits: PLACES });
const ALIGNED = new Intl.NumberFormat('en-US', { ...USD, minimumFractionDigits: PLACES });

/** An exact amount of USD, down to one micro-USD: `$0.000143`, `$0.02`. */
export const exactUsd = (usd: number): string => EXACT.format(usd);

/** The same with all six decimals, for amounts in a column: `$0.020000`. */
export const alignedMicroUsd = (micro: number): string => ALIGNED.format(micro / MICRO);

/** An exact amount of micro-USD as USD: `$0.000143`. */
export const exactMicroUsd = (micro: number): string => EXACT.format(micro / MICRO);
