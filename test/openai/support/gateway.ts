import type { AddressInfo } from 'node:net';
import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import { type CancelSignal, type Frame, type ReplyPiece, signalOf } from '#billing/amounts';
import type { Config, LimitsConfig } from '#config';
import { createServer } from '#http';
import type { Call, CallRequest, Idempotency, Pipeline, Send, UpstreamExchange, UpstreamRequest } from '#call';
import type { Caller } from '#accounts';
import type { Offer } from '#catalog';
import type { RateDecision } from '../../../src/server/limits/rate-limiter.ts';
import { chatRoutes } from '../../../src/openai/routes/chat-routes.ts';
import { makeOffer } from './offers.ts';
import { NOTHING_LEFT_TO_LUCK } from '../../support/nothing-left-to-luck.ts';
import { DEFAULT_LIMITS } from '../../support/default-limits.ts';

/** What the provider answers. `chunks` may wait and throw. */
export interface ScriptedReply {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly chunks: AsyncIterable<string | Buffer> | Iterable<string | Buffer>;
}

export interface GatewayOptions {
  readonly offer?: Offer;
  readonly reply: (request: UpstreamRequest, call: Call) => ScriptedReply;
  readonly limits?: Partial<LimitsConfig>;
  readonly charged?: bigint;
  readonly receipt?: string | null;
  /** Called before the settled frame. */
  readonly settle?: () => Promise<void>;
  readonly keepAliveMs?: number;
}

export const LIMITS: LimitsConfig = {
  ...DEFAULT_LIMITS,
  anonymousRequestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000,
  chatBodyBytesMax: 200_000,
  mediaBodyBytesMax: 200_000,
  bodiesWaitMs: 0,
  bodyBytesMax: 100_000,
  requestTimeoutMs: 10_000,
  clientStallMs: 10_000,
  drainOnShutdownMs: 1_000,
};

const caller: Caller = { account: 'tollgate:local:dev', key: null, wallet: null };
const rate: RateDecision = {
  allowed: true,
  retryAfterS: 0,
  requests: { perMinute: 60, limit: 60, remaining: 59, resetS: 1 },
  tokens: { perMinute: 100, limit: 100, remaining: 100, resetS: 0 },
};

/** The scripted reply as an upstream gives it: each chunk is one read. */
function exchangeOf({ status = 200, headers, chunks }: ScriptedReply, stream: boolean): UpstreamExchange {
  const arriving = (async function* read() {
    yield* chunks;
  })();
  return {
    head: Promise.resolve({
      status,
      headers: headers ?? { 'content-type': stream ? 'text/event-stream' : 'application/json' },
      scrub: (text) => text,
      ended: false,
      async read() {
        const { done, value } = await arriving.next();
        return done ? null : [Buffer.from(value)];
      },
      discard: () => void arriving.return(),
    }),
    abort: () => {},
    over: () => {},
  };
}

/** Repeated requests need a database, so they are tested where there is one. */
const refuse = () => Promise.reject(new Error('there are no idempotency keys here'));
const NO_IDEMPOTENCY: Idempotency = {
  begin: refuse,
  finish: refuse,
  abandon: refuse,
  endRunning: refuse,
  sweep: refuse,
};

/**
 * The routes on a real server, over a pipeline that does no more than carry frames: it authenticates one key, sends
 * every call to one scripted provider and settles it for a fixed amount.
 */
export async function startGateway(options: GatewayOptions) {
  const offer = options.offer ?? makeOffer();
  const state = {
    calls: [] as Call[],
    upstream: [] as UpstreamRequest[],
    aborted: [] as string[],
    settled: [] as string[],
    returned: 0,
    errors: [] as unknown[],
  };

  async function* run<R, D extends ReplyPiece>(
    call: Call<R, D>,
    signal: CancelSignal,
  ): AsyncGenerator<Frame<R, D>, void, undefined> {
    signal.addEventListener('abort', () => state.aborted.push(call.id));
    try {
      const send: Send = (request) => {
        state.upstream.push(request);
        return exchangeOf(options.reply(request, call), call.stream);
      };
      const talk = call.adapter.startAttempt(offer, send, signalOf(signal), send);
      let step = await talk.next();
      yield { type: 'head', status: talk.status ?? 200, provider: offer.provider };
      for (; !step.done; step = await talk.next())
        if (step.value !== null && step.value.byteLength > 0) yield { type: 'data', data: step.value };
      const end = step.value;
      await options.settle?.();
      state.settled.push(call.id);
      const settlement = { charged: options.charged ?? 123n, fee: 3n, drawn: 0n, shortfall: 0n };
      yield {
        type: 'settled',
        settlement,
        usage: end.usage,
        provider: offer.provider.id,
        providerName: offer.provider.name,
        receipt: options.receipt ?? null,
        result: end.result,
      };
    } catch (error) {
      if (error instanceof UpstreamFailure)
        throw new GatewayError('provider_unavailable', `Provider acme failed: ${error.message}`, { cause: error });
      throw error;
    } finally {
      state.returned++;
    }
  }

  const pipeline: Pipeline = {
    async admit(headers) {
      if (headers.authorization !== 'Bearer good') throw new GatewayError('unauthorized', 'Invalid API key');
      return { caller, rate };
    },
    admitCount: () => Promise.reject(new Error('no tokens are counted')),
    admitPoll: () => Promise.reject(new Error('nothing is polled')),
    visitor: async () => caller,
    shareOf: async () => caller.account,
    lookUp: () => null,
    count: async () => {},
    countNewKey: async () => {},
    async prepare<R, D extends ReplyPiece>(request: CallRequest<R, D>) {
      if (request.targets[0] !== offer.service)
        throw new GatewayError('invalid_model', `Model not found: ${request.targets[0]!}`, { param: 'model' });
      request.estimate(offer);
      const call: Call<R, D> = {
        id: `gen-${state.calls.length + 1}`,
        primitive: 'model',
        caller,
        requestId: request.requestId,
        service: offer.service,
        stream: request.stream,
        startedAt: 1_800_000_000_000,
        begunAt: 1_800_000_000_000,
        candidates: [{ offer, price: offer.price, estimate: 1n }],
        adapter: request.adapter,
        operation: null,
        free: null,
        continues: null,
        parent: null,
        lendable: 0n,
        stickyKey: request.stickyKey,
        metadata: request.metadata,
        traceparent: request.traceparent,
        timeoutMs: 10_000,
        wantsReceipt: request.wantsReceipt,
      };
      state.calls.push(call);
      return call;
    },
    run,
    inFlight: () => 0,
  };

  const limits = { ...LIMITS, ...options.limits };
  const server = createServer({ limits, onError: (error) => state.errors.push(error) });
  const config = { limits, upstream: { replyBytesMax: 64 * 1024 * 1024 }, billing: { receipts: 'on-request' } } as Pick<
    Config,
    'limits' | 'upstream' | 'billing'
  >;
  await server.register(
    chatRoutes({
      pipeline,
      idempotency: NO_IDEMPOTENCY,
      config,
      now: () => 1_800_000_000_000,
      onError: (error) => state.errors.push(error),
      keepAliveMs: options.keepAliveMs ?? NOTHING_LEFT_TO_LUCK.keepAliveMs,
    }),
    { prefix: '/api/v1' },
  );
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/api/v1/chat/completions`;

  return {
    state,
    port,
    server,
    post: (body: unknown, headers: Record<string, string> = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { authorization: 'Bearer good', 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    close() {
      const closed = server.close();
      // A connection whose reply was read a moment ago is not idle yet, and would be kept for five seconds.
      server.server.closeAllConnections();
      return closed;
    },
  };
}

/** A switch that code waits for and a test turns. */
export function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

/** Resolves once `holds` does; asked at every turn of the event loop. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
