export { COMPARE_TEMPORARY, compareSums } from './compare-sums.ts';
export { createKnownAccounts } from './known-accounts.ts';
export { createOldUsage } from './old-usage.ts';
export { createRollUp, type RollUp } from './roll-up.ts';
export { DAY_MS, dateOf, daysOf, type DayRange } from './day-range.ts';
export { findListings, findMarket, type ListingSums, type MarketFigures, type MarketSums } from './market-figures.ts';
export { findState } from './roll-up-state.ts';
export { recentUsers } from './few-users.ts';
export { findListing, isCalled, type ListingFigures, type ListingProvider } from './listing-figures.ts';
export type { Shown } from './shown-days.ts';
export {
  findUsage,
  USAGE_GROUPS,
  USAGE_ROWS_MAX,
  type UsageQuery,
  type UsageGroup,
  type UsageRow,
  type UsageSums,
} from './own-usage.ts';
export { findRecentTimes } from './recent-times.ts';
