export type { BilledEnd, CutReply, EndFrame, Frame, ReplyPiece, SettledFrame } from './frames.ts';
export type { GiveBack } from './give-back.ts';
export {
  type CancelSignal,
  CancelSource,
  CuttableCancelSource,
  eitherOf,
  runUntilAborted,
  signalOf,
} from './cancel-signal.ts';
export type { Settlement } from './ledger/ledger.ts';
export {
  MICRO_PER_USD,
  MICRO_USD_MAX,
  type MicroUsd,
  MoneyError,
  formatUsd,
  parseUsd,
  toUsdNumber,
} from './prices/money.ts';
export { isPerMillion, METERS, type Meter, type MeterRates, rateOf, TOKEN_PARTS } from './prices/meters.ts';
export {
  parseRates,
  perMinute,
  rateInFile,
  ratesFromJson,
  ratesToJson,
  ratesToUsd,
  unitUsd,
  usageToText,
} from './prices/price-text.ts';
export {
  BATCH_TIER,
  DEFAULT_TIER,
  type Price,
  type PriceTier,
  type Rates,
  type ServiceTiers,
  type Usage,
  completionTokens,
  cost,
  costAtMost,
  isPriced,
  maxPromptRate,
  maxRateOf,
  offerId,
  partsOfOffer,
  priceId,
  pricedMeters,
  promptCost,
  promptTokens,
  ratesAt,
  settledPrice,
  variesByCall,
} from './prices/price.ts';
