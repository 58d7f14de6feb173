import { hash } from 'node:crypto';
import { isObject } from '#wire';
import type { Caller } from '../call.ts';
import { ownIdempotencyKey } from '../idempotency/idempotency.ts';
import type { PaymentSlip } from './payments.ts';

/**
 * The idempotency key under which an answer is kept; null for none. A request without a key of its own that is paid
 * for in place has its payment. Callers without an account have no keys.
 */
export function requestKey(caller: Caller, payment: PaymentSlip | null, own: string | null): string | null {
  if (caller.anonymous) return null;
  if (own !== null) return ownIdempotencyKey(caller, own);
  return caller.paying && payment ? paymentKey(payment) : null;
}

/**
 * The idempotency key of a request that is paid for by itself and has none of its own: the same for the same
 * payment, in whatever order its members came.
 */
export const paymentKey = ({ id, payload }: Pick<PaymentSlip, 'id' | 'payload'>): string =>
  `payment ${id === undefined ? hash('sha256', canonical(payload)) : hash('sha256', id)}`;

/**
 * The digest of a request (PaymentSlip.request) with its own idempotency key: a payment without another credential is
 * good for that key alone. A reader of the chain could otherwise have the request done again under another key.
 */
export const keyedRequest = (request: string, key: string | null): string =>
  key === null ? request : hash('sha256', `${request} ${key}`);

/** JSON with the members of each object sorted by their names. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).toSorted();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}
