import { hash } from 'node:crypto';
import { isObject } from '#wire';
import type { Caller } from '../call.ts';
import type { PaymentAttempt } from './payments.ts';

/**
 * The idempotency key of a request; null for none. If a request is paid by its own payment and has no
 * key, the key follows from the payment. Callers without an account have no keys.
 */
export function requestKey(caller: Caller, payment: PaymentAttempt | null, own: string | null): string | null {
  if (caller.anonymous) return null;
  if (own !== null) return own;
  return caller.paying && payment ? paymentKey(payment) : null;
}

/** The idempotency key that follows from a payment. The order of the payment's members does not matter. */
export const paymentKey = ({ id, payload }: Pick<PaymentAttempt, 'id' | 'payload'>): string =>
  `payment ${id === undefined ? hash('sha256', canonical(payload)) : hash('sha256', id)}`;

/**
 * The digest of a request with its idempotency key, for PaymentAttempt.request. It binds a payment without another
 * credential to that key. Otherwise somebody who reads the payment on the chain could run the request again under
 * another key.
 */
export const keyedRequest = (request: string, key: string | null): string =>
  key === null ? request : hash('sha256', `${request} ${key}`);

/** JSON with the members of each object sorted by name. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).toSorted();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}
