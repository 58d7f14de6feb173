import type { IncomingHttpHeaders } from 'node:http';
import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { GatewayError } from '#errors';
import { BOUNDS, parseJson, isObject } from '#wire';
import { type ReplySink, PAYMENT_HEADERS } from '#http';
import type { Caller } from '#accounts';
import { type PaymentAttempt, paymentHeader } from './payments.ts';

/**
 * Maximum length of a payment in characters, in base64 or as JSON. A Solana transaction has at most 1,232 bytes. The
 * rest are terms.
 */
const PAYMENT_CHARS_MAX = 16 * 1024;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const RIGHT = 'the PaymentPayload of x402 version 2, an object with x402Version: 2, accepted and payload';

/**
 * The payment of an HTTP request, from `PAYMENT-SIGNATURE` or `X-PAYMENT`; null without one. `request`: computes
 * PaymentAttempt.request; called only if there is a payment. Throws GatewayError `invalid_request` that names the
 * header and the correct form.
 */
export function readPayment(headers: IncomingHttpHeaders, request: () => string): PaymentAttempt | null {
  let header: { readonly name: string; readonly text: string } | null = null;
  for (const name of PAYMENT_HEADERS) {
    const value = headers[name];
    if (value === undefined) continue;
    // Node joins a repeated header with a comma, which is not valid in base64.
    const text = String(value).trim();
    if (header !== null && header.text !== text)
      throw invalid('Two payment headers contain two payments: send only PAYMENT-SIGNATURE', name);
    header ??= { name, text };
  }
  if (header === null) return null;
  const { name, text } = header;
  const label = name.toUpperCase();
  if (text.length > PAYMENT_CHARS_MAX) throw invalid(`${label} is longer than ${PAYMENT_CHARS_MAX} characters`, name);
  if (!BASE64.test(text)) throw invalid(`${label} must be base64 and sent once: ${RIGHT}`, name);
  let payload: unknown;
  try {
    payload = parseJson(Buffer.from(text, 'base64'), BOUNDS.header);
  } catch (error) {
    throw invalid(`${label} contains no valid JSON: it must be base64 of ${RIGHT}`, name, error);
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

const invalid = (message: string, param: string, cause?: unknown) =>
  new GatewayError('invalid_request', message, { param, cause });

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

/** A sink that adds the receipt of the payment to the response headers, if the payment was taken by then. */
export function receiptSink(sink: ReplySink, paymentAttempt: PaymentAttempt | null): ReplySink {
  return paymentAttempt === null ? sink : new ReceiptSink(sink, paymentAttempt);
}

class ReceiptSink implements ReplySink {
  readonly #sink: ReplySink;
  readonly #paymentAttempt: PaymentAttempt;

  constructor(sink: ReplySink, paymentAttempt: PaymentAttempt) {
    this.#sink = sink;
    this.#paymentAttempt = paymentAttempt;
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  head(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.#sink.head(status, { ...headers, ...receiptHeaders(this.#paymentAttempt) });
  }

  flush(): void {
    this.#sink.flush();
  }

  write(bytes: Uint8Array): boolean {
    return this.#sink.write(bytes);
  }

  drained(): Promise<void> {
    return this.#sink.drained();
  }

  end(bytes: Uint8Array | string): void {
    this.#sink.end(bytes);
  }

  fail(bytes: Uint8Array): void {
    this.#sink.fail(bytes);
  }
}

/** Adds the same headers to an error response. */
export function tellPayment(reply: FastifyReply, paymentAttempt: PaymentAttempt | null): void {
  reply.headers(receiptHeaders(paymentAttempt));
}

/** The header `PAYMENT-RESPONSE` for a payment that was taken; otherwise no header. */
export const receiptHeaders = (paymentAttempt: PaymentAttempt | null): Readonly<Record<string, string>> =>
  paymentAttempt?.receipt ? { 'payment-response': paymentHeader(paymentAttempt.receipt) } : {};
