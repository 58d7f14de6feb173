export { nameInPattern, PATTERN_CHARACTERS_MAX, PATTERNS_MAX, patternsFault } from './access.ts';
export {
  ACCOUNT_ID_PATTERN,
  DEVELOPMENT_ACCOUNT,
  PROVIDER_ID_PATTERN,
  callerCaip10,
  isWallet,
  localAccount,
  needsNoMaking,
  parseAccountId,
  parseProviderId,
  toCaip10,
} from './account-id.ts';
export {
  LIMIT_RESETS,
  type LimitReset,
  type SpendLimit,
  budgetAt,
  budgetPeriod,
  periodAt,
  periodName,
} from './budgets.ts';
export { fixedTagsFault, fixedTagsSchema, parseTag, TAG_FORM, tagsText } from './tags.ts';
