import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify';
import {
  type ClientSink,
  createHttpSink,
  type Dialect,
  dialectOf,
  type HeldBody,
  heldBodyOf,
  readBytes,
  type ReplySink,
  shownAddress,
} from '#http';
import { GatewayError } from '#errors';
import { printable } from '#security';
import { isPromise, ownTurn } from '#wire';
import { type CancelSignal, CancelSource, formatUsd, type MicroUsd, type SettledFrame } from '#billing/amounts';
import type { LimitsConfig } from '#config';
import { type Admission, rateHeaders } from '#limits';
import { type Caller, mayAsk, withContent } from '#accounts';
import {
  paidCaller,
  type Payments,
  type PaymentAttempt,
  errorWithTerms,
  readPayment,
  receiptSink,
  tellPayment,
  keyedRequest,
  requestKey,
} from '#payments';
import { contentOfBody } from './request-content.ts';
import { type GivenReply, parseIdempotencyKey, KEPT_BYTES_MAX, type StoredReply } from './idempotency.ts';
import {
  handlePaidRequest,
  type PaidRequestDeps,
  type PendingRequest,
  type UnpaidCall,
  type RepeatKey,
  type ResponseRecord,
  type StartedCall,
} from './handle-paid-request.ts';

/*
 * Billed routes of the HTTP API. Each is one POST: `addPaidRoute` answers repeats, refusals and payments, and the route
 * says who pays, how its body becomes a call, and how the answer is written.
 */

export interface PaidRouteDeps extends PaidRequestDeps {
  readonly admissionOf: (request: FastifyRequest) => Admission;
  readonly limits: Pick<LimitsConfig, 'clientStallMs'>;
  /** Gets internal errors, and failures of calls whose client has left. */
  readonly onError: (
    error: unknown,
    request: { readonly id: string; readonly method: string; readonly url: string },
  ) => void;
}

/** A billed route. `P`: a request that was read and checked, `O`: the call or the run that answers it. */
export interface PaidRoute<P extends Payer, O extends StartedCall> {
  readonly path: string;
  /** Fastify's options. The schema describes the body, which `decode` reads and checks: it comes as bytes. */
  readonly options: RouteShorthandOptions & { readonly schema: { readonly description: string } };
  /** Throws or rejects with GatewayError. */
  decode(request: PaidHttpRequest, admitted: Caller): P | Promise<P>;
  /** How a decoded request is answered. Throws or rejects with GatewayError. */
  answer(paidRequest: P, context: PaidContext): PaidAnswer<O> | Promise<PaidAnswer<O>>;
  /** Headers of each answer besides the rates; default none. */
  headers?(request: FastifyRequest): Readonly<Record<string, string>>;
}

type PaidHttpRequest = FastifyRequest<{ Body: Buffer | undefined }>;

export interface PaidContext {
  readonly request: FastifyRequest;
  readonly client: ClientSink;
  readonly onError: (error: unknown) => void;
}

export interface PaidAnswer<O extends StartedCall> {
  /** The thing that is paid for, such as `A message`, and the model that makes it, for the terms of a payment. */
  readonly noun: string;
  readonly model: string;
  /** Prepares the call under `callId`. Throws or rejects with GatewayError. */
  open(callId: string, gone: CancelSignal): O | Promise<O>;
  /** Writes the answer to `sink`. Resolves with whether anything was charged. Throws the error of the call. */
  write(startedCall: O, sink: ReplySink): Promise<boolean>;
  /** Answers a repeat whose answer is not in the database; default: it is refused. */
  readonly takeKey?: RepeatKey['takeKey'] | undefined;
  /** Storage for answers that are too large for the database; default none. */
  readonly largeAnswers?: LargeAnswers<O> | null;
}

/**
 * A larger body is parsed, measured and written for its provider in turns of their own, because all these steps take
 * 45 ms for 8 MB.
 */
const TURN_FOR_EACH_STEP_BYTES = 1024 * 1024;

/** Adds a billed route to `app`. */
export function addPaidRoute<P extends Payer, O extends StartedCall>(
  app: FastifyInstance,
  deps: PaidRouteDeps,
  { path, options, decode, answer, headers }: PaidRoute<P, O>,
): void {
  const { admissionOf, limits, payments } = deps;
  const { schema } = options;

  async function handle(request: PaidHttpRequest, reply: FastifyReply): Promise<void> {
    const { caller: admitted, rate } = admissionOf(request);
    const caller = mayAsk(admitted) ? withContent(admitted, ...contentOf(request)) : admitted;
    // Before it is decoded, which takes the body from the request.
    const isLarge = (request.body?.byteLength ?? 0) > TURN_FOR_EACH_STEP_BYTES;
    const decoding = decode(request, caller);
    const paidRequest = isPromise(decoding) ? await decoding : decoding;
    try {
      if (isLarge) await ownTurn();
      const gone = new CancelSource();
      const client = createHttpSink(
        reply,
        limits.clientStallMs,
        () => gone.abort(),
        () => (headers ? { ...rateHeaders(rate), ...headers(request) } : rateHeaders(rate)),
      );
      const answering = answer(paidRequest, { request, client, onError: (error) => deps.onError(error, request) });
      const paidAnswer = isPromise(answering) ? await answering : answering;
      if (isLarge) await ownTurn();
      await handlePaidRequest(deps, new PaidRequest<O>(request, paidRequest, paidAnswer, client, gone));
    } catch (error) {
      tellPayment(reply, paidRequest.payment);
      throw error;
    } finally {
      paidRequest.release?.();
    }
    // The client left before the head was sent, so nothing is left to answer.
    if (!reply.sent) reply.hijack();
  }

  app.post<{ Body: Buffer | undefined }>(
    path,
    {
      ...options,
      schema: { ...schema, description: schema.description + (payments.open ? PAYABLE : '') },
      // The body is still bytes here. The route reads it and checks it against the same schema.
      validatorCompiler: () => () => true,
    },
    handle,
  );
}

/** The address of a request, which may name its model, and its body. */
const contentOf = ({ url, body = NO_BYTES, headers }: PaidHttpRequest) =>
  [url.split('?', 1)[0]!, contentOfBody(body, headers['content-type'])] as const;

/** Text for the description of each such route. */
const PAYABLE =
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

/** The payer of a request, and how a repeat of the request is recognised. */
export interface Payer {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  /** How a repeat of the request is recognised; null without an idempotency key. */
  readonly repeats: Pick<RepeatKey, 'key' | 'bodyHash'> | null;
  /** Called when the request is answered; absent if it holds nothing. */
  release?(): void;
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
  const payerFor = (caller: Caller): Payer => {
    const key = requestKey(caller, payment, ownKey);
    return { caller, payment, repeats: key === null ? null : { key, bodyHash: bodyHash() } };
  };
  return payment === null ? payerFor(admitted) : paidCaller(payments, admitted, payment).then(payerFor);
}

interface LargeAnswers<O> {
  readonly bytesMax: number;
  /** Does not reject. An answer that cannot be kept cannot be repeated. */
  keep(startedCall: O, head: Omit<GivenReply, 'body'>, chunks: readonly Uint8Array[]): Promise<unknown>;
}

/** One request of a billed route. A class, because closures for each request take three times the memory. */
class PaidRequest<O extends StartedCall> implements PendingRequest<O> {
  readonly caller: Caller;
  readonly repeats: RepeatKey | null;
  readonly dialect: Dialect;
  readonly body: HeldBody | null;
  readonly gone: CancelSignal;
  readonly #request: FastifyRequest;
  readonly #payment: PaymentAttempt | null;
  readonly #answer: PaidAnswer<O>;
  readonly #client: ReplySink;

  constructor(request: FastifyRequest, payer: Payer, answer: PaidAnswer<O>, client: ReplySink, gone: CancelSignal) {
    const { repeats } = payer;
    const { takeKey } = answer;
    this.caller = payer.caller;
    this.repeats = repeats === null || takeKey === undefined ? repeats : { ...repeats, takeKey };
    this.dialect = dialectOf(request);
    this.body = heldBodyOf(request);
    this.gone = gone;
    this.#request = request;
    this.#payment = payer.payment;
    this.#answer = answer;
    this.#client = client;
  }

  open(callId: string, gone: CancelSignal): O | Promise<O> {
    return this.#answer.open(callId, gone);
  }

  write(startedCall: O, isKept: boolean): Promise<ResponseRecord | null> {
    return isKept ? this.#writeKept(startedCall) : this.#write(startedCall, this.#client).then(noRecord);
  }

  /** Writes the answer to the client, except for its end, and keeps it. */
  async #writeKept(startedCall: O): Promise<ResponseRecord> {
    const { largeAnswers } = this.#answer;
    const { sink, reply, large, end } = recordReply(this.#client, largeAnswers?.bytesMax);
    const charged = await this.#write(startedCall, sink);
    const [head, chunks] = charged ? [reply(), large()] : [null, null];
    if (head !== null && chunks !== null) await largeAnswers?.keep(startedCall, head, chunks);
    return { charged, storedReply: reply, end };
  }

  replay({ status, headers, body }: StoredReply): void {
    this.#client.head(status, { ...headers, 'idempotent-replayed': 'true' });
    this.#client.end(body);
  }

  async refuse(refusal: UnpaidCall): Promise<never> {
    throw await refusedWithTerms(refusal, this.#answer.noun, this.#answer.model, this.#request);
  }

  #write(startedCall: O, sink: ReplySink): Promise<boolean> {
    return this.#answer.write(startedCall, receiptSink(sink, this.#payment));
  }
}

const noRecord = () => null;

const MODEL_CHARS_MAX = 128;

/**
 * The error for a request that was refused because money is missing; with payment terms if it can be paid. `noun`: the
 * thing to pay for, such as `A message`.
 */
async function refusedWithTerms(
  { error, payable, amount, terms }: UnpaidCall,
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
export async function onceSettled<R>(
  { frames }: StartedCall<R>,
  sink: Pick<ReplySink, 'closed'>,
  onError: (error: unknown) => void,
  write: (settled: SettledFrame<R>) => boolean | Promise<boolean>,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return false;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      if (value.type !== 'settled') continue;
      const writing = write(value);
      return isPromise(writing) ? await writing : writing;
    }
  } catch (error) {
    if (!sink.closed) throw error;
    return false;
  } finally {
    // After the end this has no effect. If the client has left, the call still goes on and is settled.
    iterator.return?.().catch(onError);
  }
}

/** A reply that is recorded while it is written to the client. */
interface RecordedReply {
  /** Records everything that is written, and never reports that the client has left. */
  readonly sink: ReplySink;
  /** The whole reply; null before its end, and null if it failed. */
  reply(): GivenReply | null;
  /** The chunks of a reply that is too large for `reply` to have a body; null for any other reply. */
  large(): readonly Uint8Array[] | null;
  /** Writes the last bytes, which the sink holds back, to the client. */
  end(): void;
}

/** `fileBytesMax`: the largest reply that is stored as a file, in bytes; default none is. */
function recordReply(client: ReplySink, fileBytesMax = 0): RecordedReply {
  // The largest reply whose chunks are held in memory. Replies for the database are held even if files must be smaller.
  const bytesMax = Math.max(fileBytesMax, KEPT_BYTES_MAX.charged);
  let head: { status: number; headers: Record<string, string> } | null = null;
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let last: Uint8Array | null = null;
  let failed = false;
  const keep = (chunk: Uint8Array) => {
    bytes += chunk.byteLength;
    if (bytes <= bytesMax) chunks.push(chunk);
    else chunks = [];
  };
  return {
    sink: {
      closed: false,
      head(status, headers) {
        head = {
          status,
          headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        };
        if (!client.closed) client.head(status, headers);
      },
      flush() {
        if (!client.closed) client.flush();
      },
      write(chunk) {
        keep(chunk);
        return client.closed || client.write(chunk);
      },
      drained: () => client.drained(),
      end(rest) {
        last = typeof rest === 'string' ? Buffer.from(rest) : rest;
        keep(last);
      },
      fail(chunk) {
        failed = true;
        last = chunk;
      },
    },
    reply() {
      if (head === null || last === null || failed) return null;
      return { ...head, body: bytes <= KEPT_BYTES_MAX.charged ? Buffer.concat(chunks) : null };
    },
    large: () =>
      head === null || last === null || failed || bytes <= KEPT_BYTES_MAX.charged || bytes > bytesMax ? null : chunks,
    end() {
      if (last !== null && !client.closed) client.end(last);
    },
  };
}

/**
 * The cost of a settled call for the metadata of its reply (`tollgate/generation`), on every wire that has metadata.
 * Amounts are USDC as decimal strings.
 */
interface CostOf {
  /** All that left the balance: the call, and the calls under it. */
  readonly cost: string;
  /** The part of it that the call itself was charged; absent if there can be no calls under it. */
  readonly own_cost?: string;
  readonly currency: 'USDC';
}

export function costOf(settled: ChargedFrame): CostOf {
  return {
    cost: formatUsd(spentOn(settled)),
    ...(settled.runCost === undefined ? {} : { own_cost: formatUsd(settled.settlement.charged) }),
    currency: 'USDC',
  };
}

type ChargedFrame = Pick<SettledFrame, 'settlement' | 'runCost'>;

/**
 * All that a call took from the balance, with the calls under it: the cost that every wire shows. A call that took
 * something must not be made again.
 */
export const spentOn = ({ settlement, runCost }: ChargedFrame): MicroUsd => runCost ?? settlement.charged;

interface ReceiptRequest {
  readonly receipts: 'always' | 'on-request';
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Whether the reply includes a signed receipt. */
export function wantsReceipt(stream: boolean, { receipts, headers }: ReceiptRequest): boolean {
  return (receipts === 'always' && !stream) || asksForReceipt(headers);
}

/** The request header `x-receipt: 1` asks for a signed receipt. Streams need it even if `receipts` is `always`. */
function asksForReceipt(headers: ReceiptRequest['headers']): boolean {
  const receiptHeader = headers['x-receipt'];
  return receiptHeader === '1' || receiptHeader === 'true';
}
