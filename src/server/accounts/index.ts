export { type Access, offersWithin } from './access.ts';
export { type Approval, type ApprovalStore, type ApprovalUse, createApprovalStore } from './approvals.ts';
export {
  DEVELOPMENT_ACCOUNT,
  callerCaip10,
  costsNothing,
  parseAccountId,
  providerIdOf,
  subjectAccount,
} from './account-id.ts';
export {
  type AccountLimits,
  type BudgetRule,
  type CallRules,
  type LimitsOf,
  type LimitsSubject,
  NO_LIMITS,
  type TagBudgetRule,
  USUAL_PERCENTAGES,
  budgetName,
  budgetsFromText,
  callRulesOf,
  ownerOfLimits,
  tagBudgetName,
  patternsToText,
} from './budgets.ts';
export { createUnfundedAccounts, neverHadMoney } from './unfunded-accounts.ts';
export { type AccountNote, type NoteStore, createNoteStore } from './notes.ts';
export { callerLimits, createLimitedAccounts } from './caller-limits.ts';
export { type EndUsers, type Tags, NAME_HEADERS, namesInHeaders, tagsOfCall, tagsToText, userOf } from './tags.ts';
export {
  ACCOUNT_HEADER,
  ANONYMOUS_ACCOUNT,
  type AccountRates,
  type Authenticate,
  type Caller,
  type CallerBudget,
  type MemberRole,
  OWN_ACCOUNT,
  type MinuteRates,
  anonymousAt,
  countedByTags,
  memberOf,
  isDevelopment,
  letAct,
  mayAsk,
  needsCredential,
  letSpend,
  nobodyActs,
  spends,
  ownPartOf,
  roleToAct,
  withContent,
} from './caller.ts';
export { type CarryingLimit, carryingBudget, carryingKey, createCarriedSums } from './carried-sums.ts';
export {
  ACCOUNT_STATES,
  type AccountState,
  type AccountStates,
  type Consumer,
  type ConsumerStore,
  createAccountStates,
  createConsumerStore,
  inTurn,
  refuseStopped,
  stoppedAccount,
} from './consumer-store.ts';
export { createProviderKeys, mayUseProviderKeys, type OwnKeys, type ProviderKeys } from './provider-keys.ts';
export { type LimitsStore, carryingLimitsOf, createLimitsStore } from './limits-store.ts';
export {
  MEMBERS_MAX,
  MEMBER_ROLES,
  type AccountMember,
  type MemberStore,
  createMemberStore,
  organisationsMax,
  reaches,
} from './member-store.ts';
