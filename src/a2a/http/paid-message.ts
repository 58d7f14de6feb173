import { hash } from 'node:crypto';
import { isObject, membersOf, splice, withMembers, type JsonObject } from '#wire';
import { paidCaller, paymentOf, type Caller, type Payments, type PaymentAttempt } from '#gateway';
import type { A2aRequest } from './a2a-request.ts';
import { X402_EXTENSION, X402_FAMILY } from '../cards/rewrite-card.ts';

/** Names in message metadata of the x402 extension for A2A (v0.2, section 7). */
export const X402 = {
  status: 'x402.payment.status',
  required: 'x402.payment.required',
  payload: 'x402.payment.payload',
  receipts: 'x402.payment.receipts',
  error: 'x402.payment.error',
} as const;

const KEYS: readonly string[] = Object.values(X402);
const REJECTED = 'payment-rejected';

/** A message without its payment metadata, its caller, and the payment. */
interface PaidMessage extends Pick<A2aRequest, 'params' | 'paramsText'> {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
}

/**
 * Takes the payment out of a message, because it is for the gateway and not for the agent. A payment treats messages
 * that differ only in their ids as the same message. Throws GatewayError `invalid_request`, `service_unavailable`.
 */
export async function paidMessage(
  payments: Payments,
  caller: Caller,
  { service, params, paramsText }: Pick<A2aRequest, 'service' | 'params' | 'paramsText'>,
): Promise<PaidMessage> {
  const { message } = params;
  const metadata = isObject(message) ? message['metadata'] : undefined;
  if (!payments.open || !isObject(message) || !isObject(metadata) || !KEYS.some((key) => Object.hasOwn(metadata, key)))
    return { caller, payment: null, params, paramsText };
  const rest = Object.fromEntries(Object.entries(metadata).filter(([key]) => !KEYS.includes(key)));
  const said: JsonObject = { ...message, metadata: rest };
  const stripped = { params: { ...params, message: said }, paramsText: withoutPayment(paramsText) };
  const payload = metadata[X402.payload];
  if (payload === undefined || metadata[X402.status] === REJECTED) return { caller, payment: null, ...stripped };
  const { messageId: _id, ...same } = said;
  const payment = paymentOf(payload, `message.metadata["${X402.payload}"]`, () =>
    hash('sha256', JSON.stringify([service, { ...params, message: same }])),
  );
  return { caller: await paidCaller(payments, caller, payment), payment, ...stripped };
}

function withoutPayment(text: string): string {
  const message = membersOf(text).get('message');
  const metadata = message && text[message.start] === '{' ? membersOf(text, message.start).get('metadata') : undefined;
  if (!metadata || text[metadata.start] !== '{') return text;
  const there = KEYS.filter((key) => membersOf(text, metadata.start).has(key));
  return splice(text, [withMembers(text, metadata, Object.fromEntries(there.map((key) => [key, null])))]);
}

/**
 * Splits the extensions that a client activates. `theirs`: those for the agent, null for none. `x402`: whether the
 * client activates the x402 extension of the gateway.
 */
export function splitExtensions(extensions: string | null): { readonly theirs: string | null; readonly x402: boolean } {
  const all = extensions?.split(',') ?? [];
  const theirs = all.filter((uri) => !uri.trim().startsWith(X402_FAMILY));
  return {
    theirs: theirs.length === 0 ? null : theirs.join(','),
    x402: all.some((uri) => uri.trim() === X402_EXTENSION),
  };
}
