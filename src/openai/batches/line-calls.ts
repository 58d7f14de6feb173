import type { InjectOptions } from 'fastify';
import { isObject } from '#wire';
import { GatewayError, GatewayStopping } from '#errors';
import type { Caller } from '#accounts';
import { type Admission, UNLIMITED } from '#limits';
import { type Call, type CallRequest, type HeldCalls, newCallId, type Pipeline, type UpstreamRequest } from '#call';
import { BATCH_TIER, type ReplyPiece } from '#billing/amounts';
import { batchPriceOf } from '#catalog';
import { type Batch, type HeldRequest, type LineCalls, type LineError, type LineReply, locksUntil } from '#batch-jobs';

interface LineCallsOptions {
  readonly pipeline: Pipeline;
  /** The caller as whom the lines of a batch are called. Rejects with GatewayError. */
  readonly callerOf: (batch: Batch) => Promise<Caller>;
  readonly held: HeldCalls;
  /** Makes a request to the routes that have `pipeline`, at a server that nobody else reaches. */
  readonly inject: (
    request: InjectOptions,
  ) => Promise<{ readonly statusCode: number; readonly payload: string; readonly headers: object }>;
}

interface LineRoutes {
  readonly calls: LineCalls;
  readonly pipeline: Pipeline;
}

interface OpenLine {
  readonly caller: Caller;
  /** Set if its call is only prepared: gets the prepared call. null if the call is to be made. */
  readonly measure: { call: Call | null } | null;
  /** Set if its call may be held: until when, and gets the request that is held. */
  readonly holding?: { readonly until: number; held: HeldRequest | null };
  /** Set if its call was held, and its provider has answered. */
  readonly heldPipeline?: Pick<Pipeline, 'prepare' | 'run'>;
}

/** The header by which a route finds the line of a request. Nobody outside of this process can send one. */
const LINE = 'x-line';
const REQUEST_ID = 'x-request-id';

const FREE: Admission['rate']['requests'] = { perMinute: UNLIMITED, limit: UNLIMITED, remaining: UNLIMITED, resetS: 0 };
const UNCOUNTED: Admission['rate'] = { allowed: true, retryAfterS: 0, requests: FREE, tokens: FREE };

/** The names that OpenAI's batches have for errors, where they differ. */
const CODES: Readonly<Record<string, string>> = { invalid_model: 'model_not_found' };

/**
 * Makes the requests of lines at the routes of this gateway, so that a line is read, routed and billed as any request.
 * The routes are at a server of their own: its requests have no credential, and use nothing of the rates of their
 * account.
 */
export function createLineCalls({ pipeline, callerOf, held, inject }: LineCallsOptions): LineRoutes {
  const open = new Map<string, OpenLine>();

  async function ask(
    id: string,
    line: OpenLine,
    { endpoint }: Batch,
    isOwn: boolean,
    body: string,
  ): Promise<LineReply> {
    open.set(id, line);
    try {
      const { statusCode, payload, headers } = await inject({
        method: 'POST',
        url: isOwn ? `/api${endpoint}` : endpoint,
        headers: { [LINE]: id, 'content-type': 'application/json', accept: 'application/json' },
        payload: body,
      });
      const { [REQUEST_ID]: requestId, 'x-should-retry': mayRepeat } = headers as Readonly<Record<string, unknown>>;
      return {
        status: statusCode,
        isFinal: mayRepeat === 'false',
        requestId: typeof requestId === 'string' ? requestId : id,
        body: payload,
      };
    } finally {
      open.delete(id);
    }
  }

  const lineOf = (id: unknown): OpenLine => {
    const line = typeof id === 'string' ? open.get(id) : undefined;
    if (line === undefined) throw new GatewayStopping();
    return line;
  };

  async function hold(call: Call, holding: NonNullable<OpenLine['holding']>): Promise<void> {
    const { path, body } = await held.hold(call, holding.until);
    holding.held = { offer: call.candidates[0]!.offer.id, path, body: await bytesIn(body) };
  }

  /** The caller of a line, or the reply that says why it has no valid one. */
  async function callerOrReply(batch: Batch, id: string, run: Caller['run']): Promise<Caller | LineReply> {
    try {
      const caller = await callerOf(batch);
      return { ...caller, run: { ...run!, ...(caller.tags === undefined ? {} : { tags: caller.tags }) } };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const { code, message, param = null } = error;
      const status = code === 'permission_denied' ? FORBIDDEN : UNAUTHORIZED;
      return { status, requestId: id, body: JSON.stringify({ error: { message, type: code, code, param } }) };
    }
  }

  return {
    pipeline: {
      ...pipeline,
      admit: (headers) => ({ caller: lineOf(headers[LINE]).caller, rate: UNCOUNTED }),
      prepare(request, id = newCallId()) {
        const { heldPipeline } = lineOf(request.caller.run?.call);
        // The prepared call has the adapter of its request.
        if (heldPipeline !== undefined) return heldPipeline.prepare(request, id);
        return pipeline.prepare(cheapestFirst(request), id);
      },
      run(call, signal) {
        const { measure, holding, heldPipeline } = lineOf(call.caller.run?.call);
        if (heldPipeline !== undefined) return heldPipeline.run(call, signal);
        if (measure !== null) {
          measure.call = call;
          throw new GatewayError('unprocessable', 'This request is only measured');
        }
        return holding !== undefined && isOfBatch(call)
          ? onlyDone(hold(call, holding))
          : pipeline.run(atOnce(call), signal);
      },
    },

    calls: {
      async measure(batch, body) {
        const id = newCallId();
        const caller = await callerOrReply(batch, id, { parent: id, call: id });
        if ('status' in caller) return { refused: caller, error: errorIn(caller.body) };
        const measure: { call: Call | null } = { call: null };
        const refused = await ask(id, { caller, measure }, batch, false, body);
        const { call } = measure;
        if (call === null) return { refused, error: errorIn(refused.body) };
        return { most: held.mostOf(call), model: call.service };
      },

      async call(batch, body, callId, parent) {
        const caller = await callerOrReply(batch, callId, { parent, call: callId });
        if ('status' in caller) return caller;
        // The lines were checked before the lock was made. What is set since then is for later batches.
        const { tagBudgets: _, ...lineCaller } = caller;
        const holding: OpenLine['holding'] = { until: locksUntil(batch), held: null };
        const reply = await ask(
          callId,
          { caller: lineCaller, measure: null, holding },
          batch,
          batch.dialect === 'own',
          body,
        );
        return holding.held ?? reply;
      },

      async answer(batch, body, callId, answer) {
        const heldPipeline = await held.find(callId, answer);
        if (heldPipeline === null) return null;
        // What a provider has done is charged, even if the key of the batch was deleted meanwhile.
        const run = { parent: batch.lockId!, call: callId };
        const tags = batch.tags === null ? {} : { tags: batch.tags };
        const caller: Caller = { account: batch.account, key: null, wallet: null, run, ...tags };
        return ask(callId, { caller, measure: null, heldPipeline }, batch, batch.dialect === 'own', body);
      },
    },
  };
}

/** The frames of a call that is only locked: its route answers with an error that nobody gets. */
// oxlint-disable-next-line require-yield -- as above
async function* onlyDone(work: Promise<void>): AsyncGenerator<never, void, undefined> {
  await work;
  throw new GatewayError('unprocessable', 'This request waits for its provider');
}

/** Whether a provider gets the call in a batch. Another one may have the same rates. */
const isCheap = ({ offer, price }: Call['candidates'][number]): boolean =>
  batchPriceOf(offer) !== undefined && price === offer.variants[BATCH_TIER];

/** Whether the provider that comes first gets the call in a batch. */
const isOfBatch = ({ candidates: [first] }: Call): boolean => first !== undefined && isCheap(first);

/** A call that is made at once. No provider serves it for the price of a batch, to which it could fall back. */
const atOnce = <R, D extends ReplyPiece>(call: Call<R, D>): Call<R, D> => ({
  ...call,
  candidates: call.candidates.filter((candidate) => !isCheap(candidate)),
});

/** Nobody waits for a line, so the cheapest provider comes first, unless the request says how they are to be sorted. */
const cheapestFirst = <R, D extends ReplyPiece>(request: CallRequest<R, D>): CallRequest<R, D> =>
  request.preferences.sort !== null ? request : { ...request, preferences: { ...request.preferences, sort: 'price' } };

async function bytesIn(body: UpstreamRequest['body']): Promise<Uint8Array> {
  if (body === null || typeof body === 'string') return Buffer.from(body ?? '');
  if (body instanceof Uint8Array) return body;
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}

const FORBIDDEN = 403;
const UNAUTHORIZED = 401;

function errorIn(body: string): LineError {
  const reply: unknown = JSON.parse(body);
  const error = isObject(reply) && isObject(reply['error']) ? reply['error'] : {};
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const code = text(error['code']) ?? text(error['type']) ?? 'invalid_request';
  return {
    code: CODES[code] ?? code,
    message: text(error['message']) ?? 'The request was refused',
    param: text(error['param']),
  };
}
