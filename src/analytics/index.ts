export { COMPARE_TEMPORARY, compareSums } from './compare-sums.ts';
export { createKnownAccounts } from './known-accounts.ts';
export { createOldUsage, findState } from './roll-up-state.ts';
export { createRollUp, type RollUp } from './roll-up.ts';
export { DAY_MS, dateOf, daysOf, type DayRange } from './call-facts.ts';
export { findListings, findMarket, type ListingSums, type MarketFigures, type MarketSums } from './market-figures.ts';
export { recentUsers, type Shown } from './shown-days.ts';
export {
  findListing,
  isCalled,
  type ListingFigures,
  type ListingProvider,
  findRecentTimes,
} from './listing-figures.ts';
export {
  findUsage,
  USAGE_GROUPS,
  USAGE_ROWS_MAX,
  type UsageQuery,
  type UsageGroup,
  type UsageRow,
  type UsageSums,
} from './own-usage.ts';
