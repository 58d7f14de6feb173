import { UpstreamFailure } from '#wire';
import type { Frame, CancelSignal, ReplyPiece } from '#billing/amounts';
import { type Endpoint, isOwn, type Offer } from '#catalog';
import { setTimeout as pause } from 'node:timers/promises';
import { Attempts, type AttemptsOptions, CANCELLED } from './attempts.ts';
import { type Call, type Handler, isReadOn, type ReplyEnd, type ProviderStream } from './call.ts';
import { CALL_OVER, type Send, type UpstreamRequest, type Upstream, type UpstreamExchange } from './upstream.ts';
import { contentLimitMs, trialLimitMs, WITHOUT_EFFECTS } from './routing/attempt-plan.ts';
import type { ReplyMemory } from './reply-memory.ts';
import type { RunningCall, RunningCalls } from './running-calls.ts';
import { releaseProbes } from './routing/router.ts';

interface DrainLimits {
  readonly drainMs: number;
  readonly drainBytes: number;
}

interface ExecuteOptions extends AttemptsOptions, CallRequestsOptions {
  /** Limits for reading the usage of a reply that was given up for its size. Absent: it is not read on. */
  readonly drain?: DrainLimits;
  /** Each call is in it while it runs. Absent: only the client or the time ends a call. */
  readonly running?: RunningCalls;
}

/**
 * Forwards a call to its candidates, one after the other, until one replies. The next candidate is tried only while no
 * byte of a reply was given out. The call keeps one id over all attempts. `signal` aborts when the client has left and
 * the time for draining is over: the run then ends with the usage measured so far.
 */
export function createExecute(options: ExecuteOptions): Handler {
  return (call, signal) => execute(options, call, signal);
}

async function* execute<R, D extends ReplyPiece>(
  options: ExecuteOptions,
  call: Call<R, D>,
  signal: CancelSignal,
): AsyncGenerator<Frame<R, D>, void, undefined> {
  const { upstream, observer } = options;
  const { adapter, timeoutMs, caller } = call;
  call.onLocked?.();
  const requests = new CallRequests(options, call);
  const attempts = new Attempts<R>(options, call);
  const leave = () => requests.stop(LEFT);
  signal.addEventListener('abort', leave);
  options.running?.add(requests);
  const timer = setTimeout(
    () => requests.stop(new Error(`the call took longer than ${timeoutMs / 1000} s`)),
    timeoutMs,
  );
  let complete = false;
  try {
    for (;;) {
      if (signal.clientLeft === true && adapter.isOneRequest === true) {
        releaseProbes(options.health, call);
        throw LEFT;
      }
      const offer = attempts.begin();
      const { endpoint, next } = attempts;
      const traced = observer.upstreamHeaders(call);
      let providerStream: ProviderStream<R, D> | null = null;
      let hurry: NodeJS.Timeout | undefined;
      try {
        if (signal.aborted) leave();
        providerStream = adapter.startAttempt(
          offer,
          (request) => requests.send({ offer, endpoint }, request, next === null, traced),
          requests.signal,
          detachedSend(upstream, endpoint, caller.account, traced),
        );
        let end: ReplyEnd<R> | null = null;
        try {
          if (providerStream.waits) {
            observer.idle(call);
            await providerStream.next();
            attempts.workBegins();
          }
          hurry = waitForContent(call, attempts, requests);
          while (end === null) {
            const step = await providerStream.next();
            const isFirst = attempts.hasHeard();
            if (step.done) end = step.value;
            else {
              if (isFirst && providerStream.status !== undefined)
                yield {
                  type: 'head',
                  status: providerStream.status,
                  provider: offer.provider,
                  isReadOn: isReadOn(call, offer),
                };
              if (step.value !== null && step.value.byteLength > 0) {
                attempts.hasGiven = true;
                clearTimeout(hurry);
                yield { type: 'data', data: step.value };
              }
            }
          }
        } finally {
          clearTimeout(hurry);
          if (end === null) await providerStream.return?.(CANCELLED as never);
        }
        complete = true;
        requests.over();
        yield attempts.succeeded(end);
        return;
      } catch (error) {
        const rest =
          options.drain && isOwn(offer) && error instanceof UpstreamFailure && error.tooLarge
            ? await requests.rest(options.drain)
            : undefined;
        const { stopped, sent } = requests;
        const { aborted: hasLeft, byGateway = false } = signal;
        const end = await attempts.failed(providerStream, error, hasLeft, {
          stopped,
          isTaken: sent && !byGateway,
          byGateway,
          rest,
        });
        if (end !== null) {
          yield end;
          return;
        }
        if (error instanceof UpstreamFailure) requests.abort(error);
        requests.forget();
        // It ends early when the call is stopped, which the next attempt finds out.
        if (attempts.pauseMs > 0) await pause(attempts.pauseMs, null, { signal: requests.signal }).catch(() => {});
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
    options.running?.remove(requests);
    attempts.over();
    // If the consumer returned early, this ends all open exchanges. After a complete reply it has no effect.
    if (!complete) requests.abort(CALL_OVER);
    requests.forget();
  }
}

/** Its client has left. No attempt begins for it, and what runs is cut. */
const LEFT = new Error('the client is gone');

/**
 * Ends the requests of an attempt whose stream has no content in the time of its model, or, with another candidate, in
 * the usual time; and those of a stranger's offer that is not proven and has no answer in a short time.
 */
function waitForContent(
  { stream, candidates }: Call,
  { endpoint, next, current, isTrial }: Attempts<unknown>,
  requests: CallRequests,
): NodeJS.Timeout | undefined {
  if (!stream && !isTrial) return undefined;
  const own = endpoint.kind === 'direct' ? endpoint.timeouts?.firstEventMs : undefined;
  // The last one of several is not waited for longer: it rests then, and the next call goes to others.
  const trialMs = isTrial && candidates.length > 1 ? trialLimitMs(current, stream) : null;
  const ms = own ?? trialMs ?? (next === null ? null : contentLimitMs(current));
  if (ms === null) return undefined;
  const late = () =>
    requests.abort(
      new UpstreamFailure('the provider sent nothing of its answer in time', {
        retryable: true,
        attributedTo: 'provider',
        timedOut: true,
      }),
    );
  return setTimeout(late, ms);
}

/** The usage stands in the last bytes of a reply. */
const REST_BYTES = 16 * 1024;

interface CallRequestsOptions {
  readonly upstream: Upstream;
  /** Absent: the memory that replies use is not counted. */
  readonly replyMemory?: ReplyMemory;
}

/** The requests that one call has sent. All of them end with the call. */
class CallRequests implements RunningCall {
  place = -1;
  readonly call: Call;
  /** Why the call was stopped early; null while it was not. */
  stopped: Error | null = null;
  readonly #options: CallRequestsOptions;
  /** It reserves nothing. */
  readonly #isFree: boolean;
  readonly #repeatable: boolean;
  readonly #sent: UpstreamExchange[] = [];
  readonly #over = new AbortController();

  constructor(options: CallRequestsOptions, call: Call) {
    const { candidates, free, primitive } = call;
    this.#options = options;
    this.call = call;
    this.#isFree = candidates.every(({ estimate }) => estimate === 0n);
    this.#repeatable = free !== null || WITHOUT_EFFECTS.has(primitive);
  }

  /** A whole request of the current attempt has gone out. */
  get sent(): boolean {
    return this.#sent.some(({ sent }) => sent === true);
  }

  /** Reads on what was given up for its size. Resolves with its end, which has the usage; undefined without one. */
  async rest({ drainMs, drainBytes }: DrainLimits): Promise<Buffer | undefined> {
    const exchange = this.#sent.at(-1);
    if (exchange === undefined || drainBytes === 0) return undefined;
    const late = setTimeout(() => exchange.abort(new Error('the rest of the reply did not come in time')), drainMs);
    let end: Buffer = Buffer.alloc(0);
    try {
      const reply = await exchange.head;
      for (let bytes = 0; bytes <= drainBytes;) {
        const chunks = await reply.read();
        if (chunks === null) break;
        const arrived = Buffer.concat(chunks);
        bytes += arrived.length;
        end = Buffer.concat([end, arrived]).subarray(-REST_BYTES);
      }
    } catch {
      // What came until then is read.
    } finally {
      clearTimeout(late);
    }
    return end.length === 0 ? undefined : end;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /**
   * `endpoint`: that of the offer, with the key of this call. `last`: no other offer is left to try. `traced`: trace
   * headers; null for none. Throws once stopped.
   */
  send(
    { offer, endpoint }: { readonly offer: Offer; readonly endpoint: Endpoint },
    request: UpstreamRequest,
    last: boolean,
    traced: Readonly<Record<string, string>> | null,
  ): UpstreamExchange {
    if (this.stopped) throw this.stopped;
    const { upstream, replyMemory } = this.#options;
    const { account } = this.call.caller;
    const sent = { ...withHeaders(request, traced), repeatable: this.#repeatable && request.repeatable !== false };
    const exchange = upstream.send(endpoint, sent, account, last);
    if (replyMemory) exchange.memory = replyMemory.open(account, this.#isFree, offer.provider.id);
    this.#sent.push(exchange);
    return exchange;
  }

  stop(reason: Error): void {
    this.stopped ??= reason;
    this.abort(reason);
    this.#over.abort(reason);
  }

  abort(reason: Error): void {
    for (const exchange of this.#sent) exchange.abort(reason);
  }

  over(): void {
    for (const exchange of this.#sent) exchange.over();
  }

  /** Frees the memory of the replies. */
  forget(): void {
    for (const exchange of this.#sent) exchange.memory?.release();
    this.#sent.length = 0;
  }
}

/** Sends requests that may outlive the call. The returned function does not keep the call in memory. */
function detachedSend(
  upstream: Upstream,
  endpoint: Endpoint,
  account: string,
  traced: Readonly<Record<string, string>> | null,
): Send {
  return (request) => upstream.send(endpoint, withHeaders(request, traced), account);
}

const withHeaders = (request: UpstreamRequest, more: Readonly<Record<string, string>> | null): UpstreamRequest =>
  more === null ? request : { ...request, headers: { ...request.headers, ...more } };
