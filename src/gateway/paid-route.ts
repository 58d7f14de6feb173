import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { dialectOf, GatewayError, printable, type ReplySink } from '#wire';
import { formatUsd, type SettledFrame } from '#billing';
import type { Caller } from './call.ts';
import { type GivenReply, parseIdempotencyKey } from './idempotency/idempotency.ts';
import { paidCaller } from './payments/paid-caller.ts';
import { readPayment } from './payments/payment-header.ts';
import { keyedRequest, requestKey } from './payments/payment-key.ts';
import type { Payments, PaymentAttempt } from './payments/payments.ts';
import { errorWithTerms } from './payments/with-terms.ts';
import { recordReply } from './reply/recorded-reply.ts';
import type { PendingRequest, StartedCall, Refusal, RepeatKey } from './handle-paid-request.ts';
import { heldBodyOf } from './server/body-memory.ts';
import { readBytes } from './server/request-bodies.ts';
import { shownAddress } from './server/request-context.ts';

/*
 * Code that the billed routes of the HTTP API share. Each such route is one POST and passes a PendingRequest to
 * `handlePaidRequest`.
 */

/** Text for the description of each such route. */
export const PAYABLE =
  ' If the balance is too low, the answer is 402 with x402 terms (version 2) in `PAYMENT-REQUIRED`. Repeat the request ' +
  'with a payment in `PAYMENT-SIGNATURE`. No account is needed.';

/**
 * Routes that are added to `app` from now on get the raw bytes of the body. So the structure can be checked before it
 * is parsed, and the digest of the bytes can identify a repeated request. A route without a `bodyLimit` gets this one,
 * in bytes. `weight`: see readBytes. `more`: content types beside JSON.
 */
export function takeBytes(
  app: FastifyInstance,
  bodyLimit: number,
  weight: number,
  ...more: readonly (string | RegExp)[]
): void {
  // The limit is set on the route, not on the parser: Fastify checks content-length against the route's limit before it
  // chooses a parser.
  app.addHook('onRoute', (route) => void (route.bodyLimit ??= bodyLimit));
  app.removeAllContentTypeParsers();
  for (const type of ['application/json', /^application\/[\w.-]+\+json(?:;|$)/i, ...more])
    app.addContentTypeParser(type, readBytes(weight));
}

/** The facts of a request that every route passes to `handlePaidRequest`. */
export const servedRequest = (request: FastifyRequest): Pick<PendingRequest<StartedCall>, 'dialect' | 'body'> => ({
  dialect: dialectOf(request),
  body: heldBodyOf(request),
});

const NO_BYTES = Buffer.alloc(0);

/**
 * The bytes of the body, which the request then holds no longer: a call may run for minutes, and needs only what was
 * read of them.
 */
export function bodyFrom(request: FastifyRequest<{ Body: Buffer | undefined }>): Buffer {
  const { body = NO_BYTES } = request;
  request.body = undefined;
  return body;
}

/** Throws GatewayError for a compressed body. */
export function refuseEncoding({ 'content-encoding': encoding = '' }: IncomingHttpHeaders): void {
  if (encoding !== '' && encoding !== 'identity')
    throw new GatewayError('invalid_request', 'Send the body uncompressed, without content-encoding', {
      param: 'content-encoding',
    });
}

/** The payer of a request, and how a repeat of the request is recognised. */
export interface Payer {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  /** How a repeat of the request is recognised; null without an idempotency key. */
  readonly repeats: Pick<RepeatKey, 'key' | 'bodyHash'> | null;
}

/**
 * `admitted`: the caller that the request's credential identifies. `bodyHash`: makes the SHA-256 of the request's
 * content, and is not kept, because it may hold the content. Throws or rejects with GatewayError.
 */
export function payerOf(
  payments: Payments,
  headers: IncomingHttpHeaders,
  admitted: Caller,
  bodyHash: () => string,
): Payer | Promise<Payer> {
  const own = headers['idempotency-key'];
  const ownKey = own === undefined ? null : parseIdempotencyKey(own);
  const payment = payments.open ? readPayment(headers, () => keyedRequest(bodyHash(), ownKey)) : null;
  const of = (caller: Caller): Payer => {
    const key = requestKey(caller, payment, ownKey);
    return { caller, payment, repeats: key === null ? null : { key, bodyHash: bodyHash() } };
  };
  return payment === null ? of(admitted) : paidCaller(payments, admitted, payment).then(of);
}

/** Storage for answers that are too large for the database. */
interface LargeAnswers<O> {
  /** Size of the largest answer that is kept, in bytes. */
  readonly bytesMax: number;
  /** Does not reject. An answer that cannot be kept cannot be repeated. */
  keep(opened: O, head: Omit<GivenReply, 'body'>, chunks: readonly Uint8Array[]): Promise<unknown>;
}

/**
 * Writes the answer to `client`, and keeps it if it is to be kept. `write` resolves with whether anything was charged.
 */
export function answersOn<O extends StartedCall>(
  client: ReplySink,
  write: (opened: O, sink: ReplySink) => Promise<boolean>,
  largeAnswers: LargeAnswers<O> | null = null,
): Pick<PendingRequest<O>, 'write' | 'replay'> {
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
 * The error for a request that was refused because money is missing; with payment terms if it can be paid. `noun`: the
 * thing to pay for, such as `A message`.
 */
export async function refusedWithTerms(
  { error, payable, amount, terms }: Refusal,
  noun: string,
  model: string,
  request: FastifyRequest,
): Promise<GatewayError> {
  if (!payable) return error;
  const description = `${noun} by ${printable(model, MODEL_CHARS_MAX)}, at most ${formatUsd(amount)} USDC more`;
  return errorWithTerms(error, await terms({ url: shownAddress(request), description, mimeType: 'application/json' }));
}

/**
 * Waits for the settlement of a call, for replies that are written only at the end, and passes it to `write`. Resolves
 * with the result of `write`, whether anything was charged, or with false if the client has left. Throws the error of
 * the call.
 */
export async function onceSettled(
  { frames }: StartedCall,
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
    // After the end this has no effect. If the client has left, the call still goes on and is settled.
    iterator.return?.().catch(onError);
  }
}
