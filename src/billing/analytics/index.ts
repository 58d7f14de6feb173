export { DAY_MS, type DayRange, dateOf, daysOf } from './call-facts.ts';
export { COMPARE_TEMPORARY, compareSums } from './compare-sums.ts';
export { accountsAfter, FOCUS_COLUMNS, focusRows } from './focus.ts';
export { createKnownAccounts } from './known-accounts.ts';
export {
  type ListingFigures,
  type ListingProvider,
  findListing,
  findRecentTimes,
  isCalled,
} from './listing-figures.ts';
export { type ListingSums, type MarketFigures, type MarketSums, findListings, findMarket } from './market-figures.ts';
export {
  PERIODS,
  USAGE_GROUPS,
  USAGE_ROWS_MAX,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
  type UsageSums,
  added,
  findTagNames,
  findUsage,
  periodOf,
} from './own-usage.ts';
export { type AccountStatement, readStatement } from './statement.ts';
export { type TimeZone, UTC, timeZoneOf } from './time-zone.ts';
export { findZonedUsage } from './zoned-usage.ts';
export { type CostOfOffer, MEMBER_TAG, type OfferCost } from './call-facts.ts';
export {
  boundsOf,
  CONSOLE_RANGES,
  type ConsoleRange,
  type ConsoleSums,
  findAccountSums,
  findAsOf,
  findAttempts,
  findOfferSums,
  findPriceTimes,
  findRestingMoney,
  findTimeSums,
  marginOf,
  NO_CALLS,
  type OfferSums,
  plus,
  type RestingMoney,
} from './console-figures.ts';
export { type OfferCalls, sumOfferCalls } from './offer-calls.ts';
export { createOldUsage, findCursors, findState } from './roll-up-state.ts';
export { type RollUp, createRollUp } from './roll-up.ts';
export { type PublicRange, recentUsers } from './shown-days.ts';
