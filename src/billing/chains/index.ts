export type { TreasuryAct, NewAct } from './act-rows.ts';
export { LOSSES, TRANSIT } from './books.ts';
export type { ChainBook, OpenMoney } from './chain-rows.ts';
export {
  type Chain,
  ChainUnavailable,
  type PaymentPayload,
  PaymentProblem,
  type SignedPayment,
  WithdrawalProblem,
} from './chain.ts';
export type { Chains, ChainsOptions } from './chains.ts';
export type { Deposit } from './deposit-rows.ts';
export { listBooks, loadChains } from './load-chains.ts';
export type { BoundWallet, Wallets } from './wallets.ts';
export { CANCELED, type Withdrawal } from './withdrawal-rows.ts';
