const MICRO = 1_000_000;
const CENTS = 2;
const PLACES = 6;
const USD = { style: 'currency', currency: 'USD' } as const;
const EXACT = new Intl.NumberFormat('en-US', { ...USD, minimumFractionDigits: CENTS, maximumFractionDigits: PLACES });
const ALIGNED = new Intl.NumberFormat('en-US', { ...USD, minimumFractionDigits: PLACES });

/** An amount to the last micro-USD: a charge is never rounded. `$0.000143`, `$0.02` */
export const exactUsd = (usd: number): string => EXACT.format(usd);

/** The same with all digits, for amounts that stand below each other: `$0.020000`. */
export const alignedMicroUsd = (micro: number): string => ALIGNED.format(micro / MICRO);

/** Micro-USD to the last one: `$0.000143`. */
export const exactMicroUsd = (micro: number): string => EXACT.format(micro / MICRO);
