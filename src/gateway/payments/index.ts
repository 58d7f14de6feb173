export * from './payments.ts';
export { PAYMENT_HEADERS, paymentHeader, paymentOf, readPayment } from './payment-header.ts';
export { PaymentNeeded } from './payment-needed.ts';
export { paymentKey } from './payment-key.ts';
export { paidCaller } from './paid-caller.ts';
export { createLockPayments, type LockPayments } from './lock-payments.ts';
export { createPayments, type PaymentsOptions, type TopupBounds } from './create-payments.ts';
export { paidSink, receiptHeaders, tellPayment, withTerms } from './http-terms.ts';
export { publicAddress } from './public-address.ts';
