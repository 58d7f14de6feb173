/* Amounts, prices and settlements for code that shows or computes money but never moves it: the configuration, the
   protocols, commands without a database. */
export type { Frame, SettledFrame } from './bill.ts';
export { CuttableCancelSource, CancelSource, eitherOf, type CancelSignal, signalOf } from './cancel-signal.ts';
export type { Settlement } from './ledger.ts';
export { formatUsd, MICRO_PER_USD, type MicroUsd, MoneyError, parseUsd, toUsdNumber } from './money.ts';
export {
  cost,
  costAtMost,
  type Meter,
  METERS,
  parseRates,
  type Price,
  pricesCache,
  promptTokens,
  rateOf,
  type Rates,
  unitUsd,
  type Usage,
} from './price.ts';
