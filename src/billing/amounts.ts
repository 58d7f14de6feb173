export type { Frame, Piece, SettledFrame } from './bill.ts';
export { type CancelSignal, CancelSource, CuttableCancelSource, eitherOf, signalOf } from './cancel-signal.ts';
export type { Settlement } from './ledger.ts';
export { MICRO_PER_USD, type MicroUsd, MoneyError, formatUsd, parseUsd, toUsdNumber } from './money.ts';
export {
  METERS,
  type Meter,
  type Price,
  type Rates,
  type Usage,
  cost,
  costAtMost,
  parseRates,
  pricesCache,
  promptTokens,
  rateOf,
  unitUsd,
} from './price.ts';
