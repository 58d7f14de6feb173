import { constants, type IncomingHttpHeaders as Http2Headers, type OutgoingHttpHeaders } from 'node:http2';
import { contentCoding, UpstreamFailure } from '#wire';
import { IdleMap, TransientMap } from '#maps';
import { bodyBytes, type Upstream, type UpstreamRequest } from '#call';
import type { TunnelEndpoint } from '#catalog';
import type { Location } from '../registry/presence.ts';
import type { Registry } from '../registry/registry.ts';
import { CONNECTION_HEADER, UNKNOWN_CONNECTION, type Peers } from '../peers.ts';
import type { CallSession } from '../tunnel/tunnel.ts';
import type { Tunnels } from '../tunnel/tunnels.ts';
import { CONSUMER_HEADER, PROXY_FAILURE_HEADER, type ProxyFailure, REPEATABLE_HEADER } from '../tunnel-wire.ts';
import { Http2Exchange, type ExchangeOwner, type Patience } from './http2-exchange.ts';
import { createConnectionShares, type ConnectionShares, type ConnectionSlot } from './connection-shares.ts';

export interface TunnelUpstreamOptions {
  readonly tunnels: Pick<Tunnels, 'session'>;
  /** The other gateways. null for a single gateway. */
  readonly peers: Pick<Peers, 'session'> | null;
  readonly registry: Pick<Registry, 'locate' | 'waitFor'>;
  /** How long an unsent request waits for its provider to reconnect. */
  readonly waitMs: number;
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /**
   * Concurrent requests to one provider for calls, and the same number for requests that only listen. A proxy accepts
   * 4,096 in total.
   */
  readonly connectionsMax: number;
  readonly consumerTag: (provider: string, account: string) => string;
}

/** Prefix of the key of a provider's requests that only listen. */
const LISTENS = 'listens ';
/** Prefix of the paths of tools in a tunnel. */
const TOOLS = '/tool/';

/** An unreachable provider may be moving to another gateway, so its location is looked up again after this time. */
const AGAIN_MS = 50;
/**
 * The longest tick of the clock for timeouts. One clock for all exchanges avoids a timer for each. A timeout may be one
 * tick late.
 */
const TURN_MS_MAX = 1_000;
/** Time for the upstream to end the stream after `discard`. */
const DISCARD_MS = 1_000;

/** Sends requests through the tunnels of providers, which are connected here or at another gateway. */
export function createTunnelUpstream(options: TunnelUpstreamOptions): Upstream<TunnelEndpoint> {
  const { tunnels, peers, registry, consumerTag, waitMs, headTimeoutMs, idleTimeoutMs, connectionsMax: max } = options;
  const turnMs = Math.max(1, Math.min(TURN_MS_MAX, headTimeoutMs / 8, idleTimeoutMs / 8));
  const turns = (ms: number) => Math.ceil(ms / turnMs) + 1;
  const patience: Patience = {
    headTurns: turns(headTimeoutMs),
    idleTurns: turns(idleTimeoutMs),
    discardTurns: turns(DISCARD_MS),
  };
  const patient: Patience = { ...patience, headTurns: Infinity, idleTurns: Infinity };
  const requests = new TransientMap<Http2Exchange, TunnelRequest>();
  /** By provider. Calls and listening requests have separate keys. */
  const shared = new IdleMap<ConnectionShares>(
    (key) => createConnectionShares({ max, waitMs: key.startsWith(LISTENS) ? 0 : headTimeoutMs }),
    ({ idle }) => idle,
  );
  let clock: NodeJS.Timeout | undefined;
  let closed = false;

  const owner: ExchangeOwner = {
    judge,
    broken,
    again: (exchange) => void wait(exchange, requests.get(exchange)!),
    ended(exchange) {
      requests.get(exchange)?.entry?.leave();
      requests.delete(exchange);
    },
  };

  /** One clock for all, which stops when it finds no request. */
  function turn(): void {
    for (const [exchange, { begun }] of requests) if (begun) exchange.turn();
    if (requests.size > 0) return;
    clearInterval(clock);
    clock = undefined;
  }

  function open(
    { endpoint, request, account }: TunnelRequest,
    location: Location | null,
  ): ReturnType<CallSession['request']> | null {
    const session = sessionTo(location, { tunnels, peers });
    if (location === null || session === null) return null;
    const headers: OutgoingHttpHeaders = {
      ...headOf(request.method, endpoint.basePath + request.path),
      ...contentCoding.none,
    };
    for (const name in request.headers) if (!NOT_SENT.has(name)) headers[name] = request.headers[name];
    if (request.body !== null) headers['content-length'] = bodyBytes(request.body);
    if (endpoint.basePath.startsWith(TOOLS)) headers[CONSUMER_HEADER] = consumerTag(endpoint.provider, account);
    if (request.repeatable) headers[REPEATABLE_HEADER] = '1';
    if (location.kind === 'elsewhere') headers[CONNECTION_HEADER] = location.connection;
    return session.request(headers, request.body === null ? NO_BODY : WITH_BODY);
  }

  /** False if the provider cannot be reached now. */
  function begin(exchange: Http2Exchange, sent: TunnelRequest): boolean {
    try {
      const stream = open(sent, registry.locate(sent.endpoint.provider));
      if (stream === null) return false;
      exchange.begin(stream, sent.request.body);
    } catch (error) {
      exchange.fail(failure('the request could not be sent to it', { unsent: true, cause: error }));
    }
    return true;
  }

  /** The request was not sent. Sends it as soon as its provider is reachable again, until `sent.until`. */
  async function wait(exchange: Http2Exchange, sent: TunnelRequest): Promise<void> {
    const { provider } = sent.endpoint;
    for (
      let remainingMs = sent.until - performance.now();
      remainingMs > 0 && !closed;
      remainingMs = sent.until - performance.now()
    ) {
      // A known connection that cannot be used has ended. The registry will learn that soon.
      if (registry.locate(provider) === null) await registry.waitFor(provider, remainingMs);
      else await new Promise((resolve) => setTimeout(resolve, Math.min(remainingMs, AGAIN_MS)));
      if (!exchange.isLive || begin(exchange, sent)) return;
    }
    exchange.fail(notConnected());
  }

  return {
    send(endpoint, request, account, last = true) {
      const exchange = new Http2Exchange(owner, request.listens || request.patient ? patient : patience);
      const { provider } = endpoint;
      const sent: TunnelRequest = { endpoint, request, account, until: 0, begun: false, entry: null };
      requests.set(exchange, sent);
      const start = () => {
        if (last) sent.until = performance.now() + waitMs;
        sent.begun = true;
        clock ??= setInterval(turn, turnMs).unref();
        if (!begin(exchange, sent)) void wait(exchange, sent);
      };
      const shares = shared.get(request.listens ? LISTENS + provider : provider);
      sent.entry = shares.enter(account, start, (failed) => exchange.fail(failed));
      // The request may have failed already.
      if (!exchange.isLive) sent.entry.leave();
      return exchange;
    },
    async close() {
      closed = true;
      for (const shares of shared.values()) shares.close();
      for (const [exchange] of requests) exchange.abort(new Error('this gateway is closing'));
    },
  };
}

/** The session to a provider that is at this place, here or through another gateway; null if it cannot be used. */
export function sessionTo(
  location: Location | null,
  { tunnels, peers }: Pick<TunnelUpstreamOptions, 'tunnels' | 'peers'>,
): CallSession | null {
  if (location === null) return null;
  const session =
    location.kind === 'here' ? tunnels.session(location.connection) : (peers?.session(location.node) ?? null);
  return session === null || session.closed || session.destroyed ? null : session;
}

export const headOf = (method: string, path: string) => ({
  ':method': method,
  ':path': path,
  ':scheme': 'http',
  ':authority': 'tunnel',
});

interface TunnelRequest {
  readonly endpoint: TunnelEndpoint;
  readonly request: UpstreamRequest;
  readonly account: string;
  /** Monotonic time until which the request may wait for its provider. */
  until: number;
  /** Its account's share let it begin. */
  begun: boolean;
  entry: ConnectionSlot | null;
}

const WITH_BODY = { endStream: false } as const;
const NO_BODY = { endStream: true } as const;

/** Headers of an HTTP/1 connection, which HTTP/2 forbids, and headers that are set anew. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

const failure = (
  message: string,
  options: Pick<ConstructorParameters<typeof UpstreamFailure>[1], 'unsent' | 'unreachable' | 'absent' | 'cause'> = {},
) => new UpstreamFailure(message, { retryable: true, attributedTo: 'provider', ...options });

export const notConnected = (): UpstreamFailure =>
  failure('the provider is not connected', { unsent: true, unreachable: true, absent: true });

const FAILURES: Readonly<Record<ProxyFailure, string>> = {
  upstream_unreachable: "the provider's service cannot be reached",
  upstream_timeout: "the provider's service did not answer in time",
  upstream_broken: "the provider's service broke off before it answered",
  unknown_service: 'the provider does not serve this any more',
  draining: 'the provider is shutting down',
};

/** The proxy sent nothing of the request to the provider's service. */
const UNSENT: ReadonlySet<string | string[]> = new Set(['upstream_unreachable', 'unknown_service']);

const isFailure = (value: unknown): value is ProxyFailure =>
  typeof value === 'string' && Object.hasOwn(FAILURES, value);

/** Reads PROXY_FAILURE_HEADER, which only a proxy or another gateway can set. A reply of an upstream cannot have it. */
export function judge(headers: Readonly<Http2Headers>): UpstreamFailure | 'again' | null {
  const failureCode = headers[PROXY_FAILURE_HEADER];
  if (failureCode === undefined) return null;
  if (failureCode === UNKNOWN_CONNECTION || failureCode === 'draining') return 'again';
  const message = isFailure(failureCode) ? FAILURES[failureCode] : 'the provider could not serve the request';
  return failure(message, { unsent: UNSENT.has(failureCode) });
}

const { NGHTTP2_REFUSED_STREAM } = constants;
/**
 * Errors of a session that ended before the stream began. In the last case the session never existed, because the other
 * gateway accepts no connections any more.
 */
const NOT_OPENED: ReadonlySet<string | undefined> = new Set([
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_STREAM_CANCEL',
]);

function broken(error: NodeJS.ErrnoException | null, code: number): UpstreamFailure | 'again' {
  // RFC 9113, 8.7: the request was not processed.
  if (code === NGHTTP2_REFUSED_STREAM || NOT_OPENED.has(error?.code)) return 'again';
  return failure('the provider broke off before it answered', { cause: error ?? undefined });
}
