export {
  keyedRequest,
  paymentKey,
  paymentOf,
  readPayment,
  receiptHeaders,
  receiptSink,
  requestKey,
  tellPayment,
} from './payment-header.ts';
export { paymentHeader } from './payments.ts';
export {
  NO_PAYMENTS,
  type PaidResource,
  type PaymentAttempt,
  PaymentNeeded,
  type PaymentReceipt,
  type PaymentRequired,
  type Payments,
  asksForMoney,
  errorWithTerms,
  paidCaller,
  refusesPayment,
  withTerms,
} from './payments.ts';
