import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, parseJson, type JsonLimits, isObject } from '#wire';
import type { PaymentReceipt, PaymentRequired, PaymentSlip } from './payments.ts';

/** The header of a payment, and the name that it had in version 1 of x402. Lower case. */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** Characters of a payment, in base64 or as JSON: a Solana transaction is at most 1,232 bytes, the rest are terms. */
const PAYMENT_CHARS_MAX = 16 * 1024;
const LIMITS: JsonLimits = { jsonDepthMax: 16, jsonKeysMax: 256, jsonElementsMax: 1_024 };
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const RIGHT = 'the PaymentPayload of x402 version 2, an object with x402Version: 2, accepted and payload';

/**
 * The payment that came with an HTTP request, in `PAYMENT-SIGNATURE` or in `X-PAYMENT`; null without one.
 * `request`: see PaymentSlip, worked out only where there is one. Throws GatewayError `invalid_request` that names
 * the header and says what is right.
 */
export function readPayment(headers: IncomingHttpHeaders, request: () => string): PaymentSlip | null {
  let found: { readonly name: string; readonly text: string } | null = null;
  for (const name of PAYMENT_HEADERS) {
    const value = headers[name];
    if (value === undefined) continue;
    // What comes twice is joined by Node with what base64 has not.
    const text = String(value).trim();
    if (found !== null && found.text !== text)
      throw invalid('Two payment headers hold two payments: send PAYMENT-SIGNATURE alone', name);
    found ??= { name, text };
  }
  if (found === null) return null;
  const { name, text } = found;
  const shown = name.toUpperCase();
  if (text.length > PAYMENT_CHARS_MAX) throw invalid(`${shown} is longer than ${PAYMENT_CHARS_MAX} characters`, name);
  if (!BASE64.test(text)) throw invalid(`${shown} must be base64 and sent once: ${RIGHT}`, name);
  let payload: unknown;
  try {
    payload = parseJson(Buffer.from(text, 'base64'), LIMITS);
  } catch (error) {
    throw invalid(`${shown} holds no JSON that can be read: it must be base64 of ${RIGHT}`, name, error);
  }
  return paymentOf(payload, name, request);
}

/**
 * A payment that came inside a message, checked as far as every door does. `param` says where it stood. Throws
 * GatewayError `invalid_request`.
 */
export function paymentOf(payload: unknown, param: string, request: () => string): PaymentSlip {
  if (!isObject(payload)) throw invalid(`${param} must be ${RIGHT}`, param);
  if (payload['x402Version'] !== 2) throw invalid(`${param}: x402Version must be 2. Send ${RIGHT}`, param);
  for (const name of ['payload', 'accepted'])
    if (!isObject(payload[name])) throw invalid(`${param}: ${name} must be an object. Send ${RIGHT}`, param);
  if (JSON.stringify(payload).length > PAYMENT_CHARS_MAX)
    throw invalid(`${param} is longer than ${PAYMENT_CHARS_MAX} characters`, param);
  return { payload, request: request(), receipt: null };
}

/** The value of `PAYMENT-REQUIRED` and of `PAYMENT-RESPONSE`. */
export const paymentHeader = (value: PaymentRequired | PaymentReceipt): string =>
  Buffer.from(JSON.stringify(value)).toString('base64');

const invalid = (message: string, param: string, cause?: unknown) =>
  new GatewayError('invalid_request', message, { param, cause });
