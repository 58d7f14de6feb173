const MICRO = 1_000_000;
const CENTS = 2;
const PLACES = 6;
const USD = { style: 'currency', currency: 'USD' } as const;
const EXACT = new Intl.NumberFormat('en-US', { ...USD, minimumFractionDigits: CENTS, maximumFractionDigits: PLACES });
const ALIGNED = new Intl.NumberFormat('en-US', { ...USD, minimumFractionDigits: PLACES });

/** With the minus that `formatUsd` has, which is as wide as a plus. */
const format = (of: Intl.NumberFormat, usd: number): string => of.format(usd).replace('-', '−');

/** An exact amount of USD, down to one micro-USD: `$0.000143`, `$0.02`. */
export const exactUsd = (usd: number): string => format(EXACT, usd);

/** The same with all six decimals, for amounts in a column: `$0.020000`. */
export const alignedMicroUsd = (micro: number): string => format(ALIGNED, micro / MICRO);

/** An exact amount of micro-USD as USD: `$0.000143`. */
export const exactMicroUsd = (micro: number): string => format(EXACT, micro / MICRO);
