import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { GatewayError, printable, type ReplySink } from '#wire';
import { formatUsd, type SettledFrame } from '#billing';
import type { Caller } from './call.ts';
import { type GivenReply, parseIdempotencyKey } from './idempotency/idempotency.ts';
import { paidCaller } from './payments/paid-caller.ts';
import { readPayment } from './payments/payment-header.ts';
import { keyedRequest, requestKey } from './payments/payment-key.ts';
import type { Payments, PaymentSlip } from './payments/payments.ts';
import { errorWithTerms } from './payments/with-terms.ts';
import { recordReply } from './reply/recorded-reply.ts';
import type { Asked, Opened, Refusal } from './serve.ts';

/* What the doors of the HTTP API share whose calls are paid for: each is one POST with an Asked for `serve`. */

/** Words of the description of each. */
export const PAYABLE =
  ' What the balance does not reach for is answered with 402 and the terms of x402 (version 2) in `PAYMENT-REQUIRED`: the same request with a payment in `PAYMENT-SIGNATURE` ' +
  'is answered, from whoever has no account too.';

/**
 * Routes of `app` that are added from now on get bytes, so that the structure is capped before anything is built, and
 * so that their digest can identify a repeated request. They take at most `bodyLimit` bytes, where they do not set a
 * limit of their own. `more`: content types beside JSON.
 */
export function takeBytes(app: FastifyInstance, bodyLimit: number, ...more: readonly (string | RegExp)[]): void {
  // Not a parser's limit: a body that says its length is judged by its route's, before a parser is chosen.
  app.addHook('onRoute', (route) => void (route.bodyLimit ??= bodyLimit));
  app.removeAllContentTypeParsers();
  for (const type of ['application/json', /^application\/[\w.-]+\+json(?:;|$)/i, ...more])
    app.addContentTypeParser(type, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}

/** Throws GatewayError for a compressed body. */
export function refuseEncoding({ 'content-encoding': encoding = '' }: IncomingHttpHeaders): void {
  if (encoding !== '' && encoding !== 'identity')
    throw new GatewayError('invalid_request', 'Send the body uncompressed, without content-encoding', {
      param: 'content-encoding',
    });
}

/** The payer of a request, and how a repeat of it is recognised. */
export interface Payer {
  readonly caller: Caller;
  readonly payment: PaymentSlip | null;
  /** The idempotency key; null for none. */
  readonly key: string | null;
  /** SHA-256 of what the request says. */
  readonly bodyHash: () => string;
}

/** `admitted`: the caller by the credential of the request. Throws or rejects with GatewayError. */
export function payerOf(
  payments: Payments,
  headers: IncomingHttpHeaders,
  admitted: Caller,
  bodyHash: () => string,
): Payer | Promise<Payer> {
  const own = headers['idempotency-key'];
  const ownKey = own === undefined ? null : parseIdempotencyKey(own);
  const payment = payments.open ? readPayment(headers, () => keyedRequest(bodyHash(), ownKey)) : null;
  const of = (caller: Caller): Payer => ({ caller, payment, key: requestKey(caller, payment, ownKey), bodyHash });
  return payment === null ? of(admitted) : paidCaller(payments, admitted, payment).then(of);
}

/** A place for answers that are too large for the database. */
interface LargeAnswers<O> {
  /** Bytes of the largest that is kept. */
  readonly bytesMax: number;
  /** Does not reject: an answer that cannot be kept is not repeated. */
  keep(opened: O, head: Omit<GivenReply, 'body'>, chunks: readonly Uint8Array[]): Promise<unknown>;
}

/**
 * Answers on `client`, and keeps the answer where it is to be kept. `write` resolves with whether anything was charged.
 */
export function answersOn<O extends Opened>(
  client: ReplySink,
  write: (opened: O, sink: ReplySink) => Promise<boolean>,
  largeAnswers: LargeAnswers<O> | null = null,
): Pick<Asked<O>, 'write' | 'replay'> {
  return {
    async write(opened, kept) {
      if (!kept) {
        await write(opened, client);
        return null;
      }
      const { sink, reply, large, end } = recordReply(client, largeAnswers?.bytesMax);
      const charged = await write(opened, sink);
      const [head, chunks] = charged ? [reply(), large()] : [null, null];
      if (head !== null && chunks !== null) await largeAnswers?.keep(opened, head, chunks);
      return { charged, kept: reply, end };
    },
    replay({ status, headers, body }) {
      client.head(status, { ...headers, 'idempotent-replayed': 'true' });
      client.end(body);
    },
  };
}

const MODEL_CHARS_MAX = 128;

/**
 * The error of a request that was refused for want of money: with terms where it can be paid. `noun`: what the payment
 * is for, such as `A message`.
 */
export async function refusedWithTerms(
  { error, payable, amount, terms }: Refusal,
  noun: string,
  model: string,
  url: string,
): Promise<GatewayError> {
  if (!payable) return error;
  const description = `${noun} by ${printable(model, MODEL_CHARS_MAX)}, at most ${formatUsd(amount)} USDC more`;
  return errorWithTerms(error, await terms({ url, description, mimeType: 'application/json' }));
}

/**
 * Waits for the settlement of a call whose reply is written at its end, and hands it to `write`. Resolves with what
 * `write` gives: whether anything was charged; false where the client is gone. Throws what the call throws.
 */
export async function onceSettled(
  { frames }: Opened,
  sink: Pick<ReplySink, 'closed'>,
  onError: (error: unknown) => void,
  write: (settled: SettledFrame) => boolean | Promise<boolean>,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- frames come one after the other
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      // oxlint-disable-next-line no-await-in-loop -- it is the last
      if (value.type === 'settled') return await write(value);
    }
  } catch (error) {
    if (!sink.closed) throw error;
    return false;
  } finally {
    // After the end this is without effect. A call that its client left goes on, and is settled.
    iterator.return?.().catch(onError);
  }
}
