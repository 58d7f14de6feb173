/* Amounts, prices and what was settled, for those who show or count money and never move it: the protocols. */
export type { Frame, SettledFrame } from './bill.ts';
export { Departure, type Leaving, signalOf } from './departure.ts';
export type { Settlement } from './ledger.ts';
export { formatUsd, type MicroUsd, MoneyError, toUsdNumber } from './money.ts';
export {
  cost,
  costAtMost,
  parseRates,
  type Price,
  pricesCache,
  promptTokens,
  rateOf,
  type Rates,
  unitUsd,
  type Usage,
} from './price.ts';
