import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, parseJson, type JsonLimits, isObject } from '#wire';
import type { PaymentReceipt, PaymentRequired, PaymentAttempt } from './payments.ts';

/** The header of a payment, and its name in version 1 of x402. Lower case. */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/**
 * Maximum length of a payment in characters, in base64 or as JSON. A Solana transaction has at most 1,232 bytes. The
 * rest are terms.
 */
const PAYMENT_CHARS_MAX = 16 * 1024;
const LIMITS: JsonLimits = { jsonDepthMax: 16, jsonKeysMax: 256, jsonElementsMax: 1_024 };
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const RIGHT = 'the PaymentPayload of x402 version 2, an object with x402Version: 2, accepted and payload';

/**
 * The payment of an HTTP request, from `PAYMENT-SIGNATURE` or `X-PAYMENT`; null without one. `request`: computes
 * PaymentAttempt.request; called only if there is a payment. Throws GatewayError `invalid_request` that names the
 * header and the correct form.
 */
export function readPayment(headers: IncomingHttpHeaders, request: () => string): PaymentAttempt | null {
  let found: { readonly name: string; readonly text: string } | null = null;
  for (const name of PAYMENT_HEADERS) {
    const value = headers[name];
    if (value === undefined) continue;
    // Node joins a repeated header with a comma, which is not valid in base64.
    const text = String(value).trim();
    if (found !== null && found.text !== text)
      throw invalid('Two payment headers contain two payments: send only PAYMENT-SIGNATURE', name);
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
    throw invalid(`${shown} contains no valid JSON: it must be base64 of ${RIGHT}`, name, error);
  }
  return paymentOf(payload, name, request);
}

/**
 * A payment from inside a message, with the checks that every route makes. `param`: the place in the message, for
 * errors. Throws GatewayError `invalid_request`.
 */
export function paymentOf(payload: unknown, param: string, request: () => string): PaymentAttempt {
  if (!isObject(payload)) throw invalid(`${param} must be ${RIGHT}`, param);
  if (payload['x402Version'] !== 2) throw invalid(`${param}: x402Version must be 2. Send ${RIGHT}`, param);
  for (const name of ['payload', 'accepted'])
    if (!isObject(payload[name])) throw invalid(`${param}: ${name} must be an object. Send ${RIGHT}`, param);
  if (JSON.stringify(payload).length > PAYMENT_CHARS_MAX)
    throw invalid(`${param} is longer than ${PAYMENT_CHARS_MAX} characters`, param);
  return { payload, request: request(), receipt: null };
}

/** Encodes the value of `PAYMENT-REQUIRED` or `PAYMENT-RESPONSE` as base64 of JSON. */
export const paymentHeader = (value: PaymentRequired | PaymentReceipt): string =>
  Buffer.from(JSON.stringify(value)).toString('base64');

const invalid = (message: string, param: string, cause?: unknown) =>
  new GatewayError('invalid_request', message, { param, cause });
