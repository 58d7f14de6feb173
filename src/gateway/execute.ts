import { GatewayError, UpstreamFailure } from '#wire';
import type { EndFrame, Frame } from '#billing';
import type { Call, Candidate, Cut, Handler, Offer, ReplyEnd, ReplyReader, Send, UpstreamRequest } from './call.ts';
import type { CallObserver } from './observer.ts';
import type { ReplyMemory } from './reply/reply-memory.ts';
import { createBlame, type Blame } from './routing/blame.ts';
import type { RetryBudget } from './routing/retry-budget.ts';
import type { Health, Router } from './routing/router.ts';
import { CALL_OVER, type Upstream, type UpstreamExchange, type UpstreamReply } from './upstream.ts';

export interface ExecuteOptions {
  readonly upstream: Upstream;
  readonly health: Health;
  readonly router: Router;
  readonly retryBudget: RetryBudget;
  readonly observer: CallObserver;
  /** Absent: what replies keep in memory is not counted. */
  readonly replyMemory?: ReplyMemory;
  /** Milliseconds; the clock of `call.begunAt`. */
  readonly now: () => number;
}

const FAILURE_BODY_BYTES_MAX = 64 * 1024;

/**
 * Forwards a call to its candidates, one after the other, until one replies. Another candidate is tried only while
 * no byte of the reply was given out; the call keeps one id over all attempts. An abort of `signal` means that
 * nobody will read on and the drain bound is reached: the run ends with what was measured.
 */
export function createExecute(options: ExecuteOptions): Handler {
  return (call, signal) => execute(options, call, signal);
}

async function* execute(
  options: ExecuteOptions,
  call: Call,
  signal: AbortSignal,
): AsyncGenerator<Frame, void, undefined> {
  const { health, observer, retryBudget, router } = options;
  const { account } = call.caller;
  const running: { readonly exchanges: UpstreamExchange[]; stopped: Error | null } = { exchanges: [], stopped: null };
  /** Made for a conversation. */
  let talkOver: AbortController | null = null;
  const abortAll = (reason: Error) => {
    for (const exchange of running.exchanges) exchange.abort(reason);
  };
  const forget = () => {
    for (const exchange of running.exchanges) exchange.memory?.release();
    running.exchanges.length = 0;
  };
  const stop = (reason: Error) => {
    running.stopped ??= reason;
    abortAll(reason);
    talkOver?.abort(reason);
  };
  const send = (offer: Offer, request: UpstreamRequest, last: boolean): UpstreamExchange => {
    if (running.stopped) throw running.stopped;
    const traced = observer.upstreamHeaders(call);
    const exchange = options.upstream.send(
      offer.endpoint,
      traced ? { ...request, headers: { ...request.headers, ...traced } } : request,
      account,
      last,
    );
    if (options.replyMemory) exchange.memory = options.replyMemory.open(account, offer.provider.id);
    running.exchanges.push(exchange);
    // A conversation may send what it does not wait for.
    exchange.head.catch(() => {});
    return exchange;
  };
  const leave = () => stop(new Error('the client is gone'));
  signal.addEventListener('abort', leave, { once: true });
  const timer = setTimeout(
    () => stop(new Error(`the call took longer than ${call.timeoutMs / 1000} s`)),
    call.timeoutMs,
  );

  let given = false;
  let complete = false;
  /** Made for a call that failed somewhere. */
  let blame: Blame | null = null;
  retryBudget.called();
  try {
    for (let attempt = 0; ; attempt++) {
      const candidate = call.candidates[attempt]!;
      const last = attempt + 1 >= call.candidates.length;
      const { offer } = candidate;
      const startedAt = options.now();
      let firstByteAt = 0;
      let reader: ReplyReader | null = null;
      observer.attemptStarted(call, offer);
      try {
        if (signal.aborted) leave();
        if ('converse' in call.exchange) {
          talkOver ??= new AbortController();
          const detached = createDetached(options.upstream, offer, account, observer.upstreamHeaders(call));
          const talk = call.exchange.converse(
            offer,
            (request) => send(offer, request, last),
            talkOver.signal,
            detached,
          );
          let end: ReplyEnd | null = null;
          try {
            for (;;) {
              const step = await talk.next();
              if (firstByteAt === 0) {
                firstByteAt = options.now();
                observer.firstByte(call);
              }
              if (step.done) {
                end = step.value;
                break;
              }
              given = true;
              yield { type: 'data', bytes: step.value };
            }
          } finally {
            if (end === null) await talk.return(NO_END);
          }
          complete = true;
          for (const exchange of running.exchanges) exchange.over();
          const now = options.now();
          health.succeeded(
            offer,
            { firstByteMs: firstByteAt - startedAt, durationMs: now - startedAt, completionTokens: 0 },
            call.free === null,
          );
          blame?.over();
          flag(offer, end);
          if (call.stickyKey !== null) router.served(call.stickyKey, offer);
          yield toEndFrame(candidate, end, {
            attempt,
            firstByteMs: firstByteAt - startedAt,
            durationMs: now - call.begunAt,
          });
          return;
        }
        let reply: UpstreamReply;
        for (;;) {
          reply = await send(offer, call.exchange.request(offer), last).head;
          reader = call.exchange.reader(offer);
          reader.head(reply.status, reply.headers);
          if (reply.status < 400) break;
          const body = await readFailure(reply);
          const failure = reader.failure(reply.status, body);
          if (!call.exchange.reform?.(offer, reply.status, body)) throw failure;
          abortAll(failure);
          forget();
          reader = null;
        }
        yield { type: 'head', status: reply.status, provider: offer.provider };
        for (;;) {
          const chunks = await reply.read();
          if (chunks === null) break;
          if (firstByteAt === 0) {
            firstByteAt = options.now();
            observer.firstByte(call);
          }
          const out = readChunks(reader, chunks);
          if (out && out.byteLength > 0) {
            given = true;
            yield { type: 'data', bytes: out };
          }
          if (reader.finished) break;
          if (reader.kept !== undefined) await reply.memory?.keeps(reader.kept);
        }
        const end = (await reader.endElsewhere?.()) ?? reader.end();
        complete = end.outcome !== 'over_cap';
        if (complete) reply.discard();
        const now = options.now();
        health.succeeded(offer, {
          firstByteMs: (firstByteAt || now) - startedAt,
          durationMs: now - startedAt,
          completionTokens: Number(end.usage?.completion ?? 0n),
        });
        blame?.over();
        flag(offer, end);
        if (call.stickyKey !== null) router.served(call.stickyKey, offer);
        if (end.rest) yield { type: 'data', bytes: end.rest };
        yield toEndFrame(candidate, end, {
          attempt,
          firstByteMs: (firstByteAt || now) - startedAt,
          durationMs: now - call.begunAt,
        });
        return;
      } catch (error) {
        const cut = cutOf(signal, running.stopped, error);
        const end =
          cut === null
            ? null
            : 'converse' in call.exchange
              ? CANCELLED
              : reader === null
                ? null
                : cutReply(reader, cut);
        // What the provider delivered is paid, and it is blamed for nothing. Where that is nothing, only who left
        // by himself is not told of a failure.
        if (end !== null && (end.outcome !== 'free' || signal.aborted)) {
          health.notProbed(offer, account);
          flag(offer, end);
          yield toEndFrame(candidate, end, {
            attempt,
            firstByteMs: firstByteAt ? firstByteAt - startedAt : 0,
            durationMs: options.now() - call.begunAt,
          });
          return;
        }
        if (signal.aborted && cut !== null) throw error;
        if (running.stopped) {
          // In a conversation a consumer may be what took so long: one that was asked, or that called for something
          // slow. A server that is silent fails by itself.
          if (!('converse' in call.exchange)) {
            blame ??= createBlame(health, call);
            blame.failed(candidate, startedAt, null);
            blame.over();
          } else health.notProbed(offer, account);
          observer.attemptFailed(
            call,
            offer,
            new UpstreamFailure(running.stopped.message, { retryable: false, blame: 'provider', cause: error }),
          );
          throw new GatewayError('provider_unavailable', `Provider ${offer.provider.name} did not finish in time`, {
            cause: error,
          });
        }
        if (!(error instanceof UpstreamFailure)) throw error;
        abortAll(error);
        forget();
        if (error.blame === 'provider') (blame ??= createBlame(health, call)).failed(candidate, startedAt, error);
        else if (error.blame === 'account' || error.tooLarge) health.notProbed(offer, account);
        observer.attemptFailed(call, offer, error);
        if (given || last || !error.retryable || !(error.unsent || retryBudget.take())) {
          blame?.over();
          throw toGatewayError(error, candidate);
        }
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
    // A consumer that returned early leaves no exchange behind. After a complete reply this is without effect.
    if (!complete) abortAll(CALL_OVER);
    forget();
  }

  function flag(offer: Offer, { flags }: ReplyEnd): void {
    if (flags.length === 0) return;
    for (const each of flags) health.flagged(offer, each);
    observer.flagged(call, offer, flags);
  }
}

/** Made here, so that whoever keeps it does not keep the call with it. */
function createDetached(
  upstream: Upstream,
  { endpoint }: Offer,
  account: string,
  traced: Readonly<Record<string, string>> | null,
): Send {
  return (request) => {
    const exchange = upstream.send(
      endpoint,
      traced ? { ...request, headers: { ...request.headers, ...traced } } : request,
      account,
    );
    exchange.head.catch(() => {});
    return exchange;
  };
}

/** The end of a conversation that its client left, and that did not come to its own end within the drain bound. */
const CANCELLED: ReplyEnd = {
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason: 'cancelled',
  flags: [],
  tail: null,
};
/** What a conversation that is broken off returns; nobody reads it. */
const NO_END = CANCELLED;

/** Whether an attempt ended because the gateway ended it, and why; null where it failed. */
function cutOf(signal: AbortSignal, stopped: Error | null, error: unknown): Cut | null {
  if (error instanceof GatewayError) return null;
  if (signal.aborted) return { reason: 'cancelled', message: 'its client left' };
  if (stopped !== null) return { reason: 'timeout', message: stopped.message };
  return error instanceof UpstreamFailure && error.tooLarge ? { reason: 'too_large', message: error.message } : null;
}

/** What a cut reply had used; null where it was broken before it was cut, and so is worth nothing. */
function cutReply(reader: ReplyReader, cut: Cut): ReplyEnd | null {
  try {
    return reader.cut(cut);
  } catch (error) {
    if (error instanceof UpstreamFailure) return null;
    throw error;
  }
}

/** Hands over what arrived together, so that the reader can give it out together. */
function readChunks(reader: ReplyReader, chunks: readonly Uint8Array[]): Uint8Array | null {
  const last = chunks.length - 1;
  if (last === 0) return reader.data(chunks[0]!, 0);
  let following = 0;
  for (const chunk of chunks) following += chunk.byteLength;
  for (let i = 0; i < last; i++) {
    const chunk = chunks[i]!;
    following -= chunk.byteLength;
    reader.data(chunk, following);
    if (reader.finished) return reader.data(NOTHING, 0);
  }
  return reader.data(chunks[last]!, 0);
}

const NOTHING = new Uint8Array(0);

function toEndFrame(
  candidate: Candidate,
  end: ReplyEnd,
  times: { attempt: number; firstByteMs: number; durationMs: number },
): EndFrame {
  const { offer } = candidate;
  return {
    type: 'end',
    price: candidate.price.id,
    provider: offer.provider.id,
    usage: end.usage,
    outcome: end.outcome,
    estimated: end.estimated,
    detail: {
      service: offer.service,
      providerName: offer.provider.name,
      outcome: end.outcome,
      estimated: end.estimated,
      finishReason: end.finishReason,
      flags: end.flags,
      attempts: times.attempt + 1,
      firstByteMs: Math.round(times.firstByteMs),
      durationMs: Math.round(times.durationMs),
    },
    tail: end.tail,
  };
}

async function readFailure(reply: UpstreamReply): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const arrived = await reply.read();
    if (arrived === null) break;
    chunks.push(...arrived);
    for (const chunk of arrived) bytes += chunk.byteLength;
    if (bytes >= FAILURE_BODY_BYTES_MAX) break;
  }
  return Buffer.from(reply.scrub(Buffer.concat(chunks).toString('utf8', 0, FAILURE_BODY_BYTES_MAX)));
}

/**
 * A failed last attempt as the consumer sees it: a refusal of its request keeps its meaning, an absent provider may
 * return, everything else is the provider's failure.
 */
function toGatewayError(failure: UpstreamFailure, candidate: Candidate): GatewayError {
  const provider = candidate.offer.provider.name;
  const detail = failure.detail ? `: ${failure.detail}` : '';
  if (failure.blame === 'request') {
    const code =
      failure.status === 413 ? 'payload_too_large' : failure.status === 422 ? 'unprocessable' : 'invalid_request';
    return new GatewayError(code, `Provider ${provider} refused the request${detail}`, { cause: failure });
  }
  if (failure.tooLarge)
    return new GatewayError(
      'unprocessable',
      `The reply of provider ${provider} cannot be taken: ${failure.message}. Ask for less at once`,
      {
        cause: failure,
      },
    );
  if (failure.blame === 'account')
    return new GatewayError('rate_limit_exceeded', failure.message, { cause: failure, retryAfterS: 1 });
  if (failure.absent)
    return new GatewayError('no_provider_healthy', `Provider ${provider} is not connected at the moment`, {
      cause: failure,
      retryAfterS: 1,
    });
  return new GatewayError('provider_unavailable', `Provider ${provider} failed: ${failure.message}${detail}`, {
    cause: failure,
    retryAfterS: failure.retryAfterS,
  });
}
