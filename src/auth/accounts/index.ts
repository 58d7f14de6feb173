/* The names of accounts and the format of keys, without the authentication of requests. */
export {
  ACCOUNT_ID_PATTERN,
  callerCaip10,
  DEVELOPMENT_ACCOUNT,
  isWallet,
  localAccount,
  needsNoMaking,
  parseAccountId,
  PROVIDER_ID_PATTERN,
  toCaip10,
  parseProviderId,
} from './account-id.ts';
export { createKey, hashKey, parseKey } from '../api-key.ts';
export {
  budgetAt,
  budgetPeriod,
  LIMIT_RESETS,
  type LimitReset,
  periodAt,
  periodName,
  type SpendLimit,
} from './budgets.ts';
