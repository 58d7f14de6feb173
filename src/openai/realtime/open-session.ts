import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { servesRealtime, type Config } from '#config';
import { REALTIME_PATH } from '#config/model-kinds';
import { GatewayError, GatewayStopping } from '#errors';
import { namesInHeaders, needsCredential, type Caller } from '#accounts';
import { type ClientSecrets, letSecretCount, type SecretGrant } from '#auth';
import type { MessageSocket } from '#http';
import type { createStreamQuota, EventTurns, OnRefused } from '#limits';
import { ownerOf } from '#tasks';
import { scrubOf } from '#security';
import { directForm, type Offer } from '#catalog';
import {
  type Call,
  capCost,
  lowestCap,
  MAX_COST_HEADER,
  NO_PREFERENCES,
  type Pipeline,
  wantsReceipt,
  type CallRequest,
} from '#call';
import type { Handshake } from './client-sockets.ts';
import { type EventRules, readSessionConfig, rulesAt } from './client-events.ts';
import { usageOf, type ResponseBounds } from './conversation-size.ts';
import { beginSession, type ProviderSession } from './provider-session.ts';
import { RealtimeSession } from './realtime-session.ts';
import { ResponseCall } from './response-call.ts';
import type { ResponseResult } from './response-end.ts';
import { type Connect, ResponseLocks } from './response-locks.ts';

export interface RealtimeDeps {
  readonly pipeline: Pick<Pipeline, 'admit' | 'visitor' | 'count' | 'prepare' | 'run'>;
  readonly config: Pick<Config, 'limits' | 'upstream' | 'billing'>;
  /**
   * Opens a WebSocket to an offer, with its key. `isLeaving`: the way to it ends soon. Rejects with UpstreamFailure.
   */
  readonly dial: (
    endpoint: Offer['endpoint'],
    options: {
      readonly path: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly timeoutMs: number;
      readonly messageBytesMax: number;
      readonly stallMs: number;
      readonly silenceMs: number;
      readonly signal: AbortSignal;
    },
  ) => Promise<{ readonly socket: MessageSocket; readonly isLeaving: () => boolean }>;
  readonly clientSecrets: Pick<ClientSecrets, 'open'>;
  readonly turns: EventTurns;
  /** How long the other end of a session may be silent. It answers pings. */
  readonly silenceMs: number;
  readonly addressOf: (request: IncomingMessage) => string;
  readonly onError: (error: unknown) => void;
  readonly onRefused?: OnRefused;
}

/** How browsers send a key, because they cannot set headers. */
const KEY_PROTOCOL = 'openai-insecure-api-key.';
/** How often an open session looks whether its credential still counts. */
const RECHECK_MS = 5_000;
/** How often it looks whether the way to its provider ends soon. What stops gives it half a minute. */
const WATCH_MS = 1_000;
/** Longest time to open a session at a provider. */
const OPEN_MS_MAX = 20_000;

/**
 * Opens a session for a handshake: the caller is admitted, the money of the first response is locked, and the provider
 * has begun. Rejects with GatewayError.
 */
export async function openSession(
  deps: RealtimeDeps,
  quota: ReturnType<typeof createStreamQuota>,
  { request, requestId, gone }: Handshake,
): Promise<OpenSession> {
  const { headers } = request;
  takeKeyOfProtocol(headers);
  const grant = letSecretCount(headers, deps.clientSecrets);
  const model = modelIn(request, grant);
  const address = deps.addressOf(request);
  const { caller: admitted } = await deps.pipeline.admit(headers, address, true);
  if (admitted.anonymous) throw needsCredential();
  const caller = { ...admitted, ...namesInHeaders(headers, admitted) };
  try {
    return await openAdmitted(deps, quota, { request, requestId, model, grant, address, caller }, gone);
  } catch (error) {
    deps.onRefused?.({ error, caller, target: `realtime session of ${model}`, requestId });
    throw error;
  }
}

async function openAdmitted(
  deps: RealtimeDeps,
  quota: ReturnType<typeof createStreamQuota>,
  opening: Opening,
  gone: AbortSignal,
): Promise<OpenSession> {
  const slot = quota.take(ownerOf(opening.caller));
  if (slot === null) {
    const { code, message } = quota.refusal();
    if (code === 'service_unavailable') throw new GatewayStopping();
    throw new GatewayError(code, message.replace('listens on', 'has').replace('streams', 'realtime sessions'));
  }
  const session = new OpenSession(deps, { ...opening, slot, isStopping: () => quota.draining });
  try {
    await session.begin(gone);
  } catch (error) {
    session.close();
    throw error;
  }
  return session;
}

/** A handshake whose caller is admitted. */
interface Opening {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly model: string;
  readonly grant: SecretGrant | null;
  readonly address: string;
  readonly caller: Caller;
}

export class OpenSession {
  readonly #deps: RealtimeDeps;
  readonly #headers: IncomingHttpHeaders;
  readonly #address: string;
  readonly #requestId: string;
  readonly #model: string;
  /** The configuration that a client secret has; null for other credentials. */
  readonly #configured: SecretGrant['session'] | null;
  readonly #over = new AbortController();
  readonly #slot: { readonly over: AbortSignal; leave(): void };
  readonly #isStopping: () => boolean;
  readonly #locks: ResponseLocks;
  #caller: Caller;
  #offer: Offer | null = null;
  /** The key with which the session was opened, of the operator or of the consumer. */
  #key: string | undefined;
  #provider: ProviderSession | null = null;
  #isLeaving = () => false;
  #recheck: NodeJS.Timeout | undefined;
  #watch: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    deps: RealtimeDeps,
    opening: Opening & {
      readonly slot: { readonly over: AbortSignal; leave(): void };
      readonly isStopping: () => boolean;
    },
  ) {
    this.#deps = deps;
    this.#headers = opening.request.headers;
    this.#requestId = opening.requestId;
    this.#model = opening.model;
    this.#configured = opening.grant?.session ?? null;
    this.#address = opening.address;
    this.#caller = opening.caller;
    this.#slot = opening.slot;
    this.#isStopping = opening.isStopping;
    this.#locks = new ResponseLocks(() => this.#offer!, 0, {
      open: (boundsAt, connect) => this.#lock(boundsAt, connect),
      // So a response that begins late still has half of its time.
      waitsMs: deps.config.upstream.callTimeoutMs / 2,
    });
  }

  async serve(client: MessageSocket): Promise<void> {
    const { config, onError } = this.#deps;
    const { slot, over, offer } = { slot: this.#slot, over: this.#over, offer: this.#offer! };
    const stop = () => over.abort(this.#isStopping() ? new GatewayStopping() : this.#tooLong());
    if (slot.over.aborted) stop();
    else slot.over.addEventListener('abort', stop);
    this.#recheck = setInterval(() => void this.#check(), RECHECK_MS).unref();
    this.#watch = setInterval(() => this.#leave(), WATCH_MS).unref();
    const { turns } = this.#deps;
    const { account } = this.#caller;
    // What a provider sends takes nothing of its clients' own rate, nor of what another provider sends them.
    const ofProvider = `${account} ${offer.provider.id}`;
    try {
      await new RealtimeSession({
        client,
        provider: this.#provider!.socket,
        session: this.#provider!.session,
        configured: this.#configured,
        locks: this.#locks,
        turns: {
          client: (bytes, onLimited, gone) => turns.take(account, bytes, onLimited, gone),
          provider: (bytes, onLimited) => turns.take(ofProvider, bytes, onLimited),
        },
        offer,
        model: this.#model,
        outputCap: this.#outputCapOf(offer),
        limits: config.limits,
        scrub: offer.endpoint.kind === 'direct' ? scrubOf(offer.endpoint.headers) : (text) => text,
        drainMs: config.billing.drainMs,
        idleMs: config.limits.realtimeIdleMs,
        over: over.signal,
        onError,
      }).run();
    } catch (error) {
      onError(error);
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#recheck);
    clearInterval(this.#watch);
    this.#locks.close();
    this.#provider?.socket.close(1000, '');
    this.#slot.leave();
  }

  /** Locks the money of the first response, and opens the session at a provider. Rejects with GatewayError. */
  async begin(gone: AbortSignal): Promise<void> {
    const leave = () => this.#locks.close();
    gone.addEventListener('abort', leave);
    await this.#locks.begin(
      (offer) => this.#outputCapOf(offer),
      (offer, call, signal) => this.#connect(offer, call, signal),
    );
    gone.removeEventListener('abort', leave);
    if (gone.aborted) throw gone.reason;
  }

  /** Opens the session at an offer. Rejects with UpstreamFailure. */
  async #connect(offer: Offer, call: Call, signal: AbortSignal): Promise<void> {
    const { dial, config, silenceMs } = this.#deps;
    const own = call.candidates.find((candidate) => candidate.offer === offer)?.ownKey;
    const endpoint = own?.endpoint ?? offer.endpoint;
    const timeoutMs = Math.min(config.upstream.headTimeoutMs, OPEN_MS_MAX);
    const { socket, isLeaving } = await dial(endpoint, {
      path: `${REALTIME_PATH}?model=${encodeURIComponent(offer.model!.upstreamModel)}`,
      headers: { 'user-agent': 'tollgate', 'x-request-id': this.#requestId },
      timeoutMs,
      messageBytesMax: config.upstream.replyBytesMax,
      stallMs: config.upstream.idleTimeoutMs,
      silenceMs,
      signal,
    });
    const stop = () => socket.terminate();
    const late = setTimeout(stop, timeoutMs);
    signal.addEventListener('abort', stop);
    try {
      this.#provider = await beginSession(socket, offer, this.#outputCapOf(offer), this.#configured);
    } catch (error) {
      stop();
      throw error;
    } finally {
      clearTimeout(late);
      signal.removeEventListener('abort', stop);
    }
    this.#isLeaving = isLeaving;
    this.#offer = offer;
    this.#key = keyOf(endpoint);
    this.#locks.outputMax = this.#outputCapOf(offer);
  }

  /** Locks the money of one response. Each counts as a request of the caller, whose credential is checked again. */
  async #lock(boundsAt: (offer: Offer) => ResponseBounds, connect?: Connect): Promise<ResponseCall> {
    const { pipeline, config } = this.#deps;
    const isFirst = connect !== undefined;
    if (!isFirst) await this.#admitAgain();
    const call = new ResponseCall({
      boundsAt,
      check: (prepared) => this.#sameKey(prepared),
      ...(isFirst ? { connect } : {}),
    });
    const { traceparent } = this.#headers;
    const request: CallRequest<ResponseResult> = {
      primitive: 'model',
      caller: this.#caller,
      requestId: this.#requestId,
      session: this.#requestId,
      targets: [this.#offer === null ? this.#model : directForm(this.#offer)],
      preferences: NO_PREFERENCES,
      stickyKey: null,
      images: 0,
      stream: true,
      adapter: call,
      estimate: (offer) => {
        refuseOther(offer);
        if (isFirst) this.#refuseConfigured(offer);
        return usageOf(boundsAt(offer));
      },
      metadata: null,
      traceparent: typeof traceparent === 'string' ? traceparent : null,
      wantsReceipt: wantsReceipt(true, { receipts: config.billing.receipts, headers: this.#headers }),
    };
    const cap = lowestCap([[MAX_COST_HEADER, this.#headers[MAX_COST_HEADER]]]);
    await call.open(pipeline, capCost(request, cap));
    return call;
  }

  /** The most tokens of one response: that of the model, or what the client secret allows. */
  #outputCapOf(offer: Offer): number {
    const requestedMax = this.#configured?.['max_output_tokens'];
    return Math.min(outputCapOf(offer), typeof requestedMax === 'number' ? requestedMax : Infinity);
  }

  /** The model may have changed since the client secret was made. Throws GatewayError. */
  #refuseConfigured(offer: Offer): void {
    if (this.#configured === null) return;
    readSessionConfig(this.#configured, configRules(offer));
  }

  async #admitAgain(): Promise<void> {
    const { pipeline } = this.#deps;
    // A wallet signed for one request, so its signature is not looked at again.
    if (this.#caller.wallet !== null) return pipeline.count(this.#caller, 1);
    const { caller } = await pipeline.admit(this.#headers, this.#address, true);
    if (caller.account !== this.#caller.account) throw needsCredential();
    this.#caller = { ...caller, ...namesInHeaders(this.#headers, caller) };
  }

  /** A session cannot change the key by which it was opened, and with the key goes the price. */
  #sameKey({ candidates: [first] }: Call): void {
    if (this.#offer === null) return;
    if (keyOf(first!.ownKey?.endpoint ?? first!.offer.endpoint) === this.#key) return;
    throw new GatewayError(
      'service_unavailable',
      'The key at the provider was changed meanwhile: open another session to use it',
    );
  }

  /** Ends the session, with its responses, before its proxy or the gateway of its tunnel cuts it. */
  #leave(): void {
    if (!this.#isLeaving()) return;
    clearInterval(this.#watch);
    this.#over.abort(
      new GatewayError('provider_unavailable', 'The provider of this session is leaving: open another session'),
    );
  }

  async #check(): Promise<void> {
    const { pipeline } = this.#deps;
    // A wallet signed for one request, so its signature is not looked at again.
    if (this.#caller.wallet !== null) return;
    try {
      const { account, anonymous } = await pipeline.visitor(this.#headers, this.#address);
      if (anonymous === undefined && account === this.#caller.account) return;
    } catch {
      // A database that is away for a moment ends no session.
      return;
    }
    if (!this.#isStopping())
      this.#over.abort(new GatewayError('unauthorized', 'The credential of this session does not count any more'));
  }

  #tooLong(): GatewayError {
    const { realtimeSessionMs } = this.#deps.config.limits;
    return new GatewayError(
      'request_timeout',
      `The session has lasted ${realtimeSessionMs / 1000} s, which is the longest here: open another one`,
    );
  }
}

/** The most tokens of one response. Without a declared maximum of the model, it may fill the context. */
const outputCapOf = ({ model }: Offer): number =>
  Math.min(model!.maxOutputTokens ?? model!.contextLength, model!.contextLength);

export const configRules = (offer: Offer, ...names: readonly string[]): EventRules =>
  rulesAt(offer, {
    names: [...names, offer.service],
    outputMax: outputCapOf(offer),
    bytesOfSecond: 0,
    spokenBytesOfSecond: 0,
  });

export function refuseOther({ service, model, endpoint }: Offer): void {
  if (!servesRealtime(model!))
    throw new GatewayError('unprocessable', `${service} is not served at ${REALTIME_PATH}`, { param: 'model' });
  if (endpoint.kind === 'direct' && endpoint.sdk !== undefined)
    throw new GatewayError('unprocessable', `${service} is a package of the AI SDK, which has no sessions`, {
      param: 'model',
    });
}

/** The key of an endpoint; undefined for a tunnel, whose proxy adds it. */
const keyOf = (endpoint: Offer['endpoint']): string | undefined =>
  endpoint.kind === 'direct' ? endpoint.headers['authorization'] : undefined;

/** Takes a key out of the subprotocols, where browsers put it. Throws GatewayError beside another credential. */
function takeKeyOfProtocol(headers: IncomingHttpHeaders): void {
  const offered = headers['sec-websocket-protocol'];
  if (!offered?.includes(KEY_PROTOCOL)) return;
  const names = offered.split(',').map((name) => name.trim());
  const [key, ...others] = names.filter((name) => name.startsWith(KEY_PROTOCOL));
  if (others.length > 0 || headers.authorization !== undefined)
    throw new GatewayError('unauthorized', 'The handshake has two credentials: send one of them');
  headers['sec-websocket-protocol'] = names.filter((name) => name !== key).join(', ');
  headers.authorization = `Bearer ${key!.slice(KEY_PROTOCOL.length)}`;
}

/**
 * The model that the address names, or that of a client secret, which is for one model. Throws GatewayError
 * `invalid_request`, `permission_denied`.
 */
function modelIn({ url = '' }: IncomingMessage, grant: SecretGrant | null): string {
  const query = new URLSearchParams(url.split('?', 2)[1] ?? '');
  for (const name of ['intent', 'call_id'])
    if (query.has(name))
      throw new GatewayError('invalid_request', `${name} is not served here: open a session of a model`, {
        param: name,
      });
  const [model, ...others] = query.getAll('model');
  if (grant !== null && others.length === 0) {
    if (model === undefined || model === grant.model) return grant.model;
    throw new GatewayError('permission_denied', `This client secret is for ${grant.model} alone`, { param: 'model' });
  }
  if (model === undefined || model === '' || others.length > 0 || model.length > 512)
    throw new GatewayError('invalid_request', 'The address must name one model: /realtime?model=NAME', {
      param: 'model',
    });
  return model;
}
