import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher, Pool } from 'undici';
import { contentCoding, bodyLengthOf, UpstreamFailure } from '#wire';
import {
  INTERIM_REFUSED,
  loadPool,
  noteUnread,
  skipInterimReplies,
  TOO_MANY_INTERIM_REPLIES,
  wasUnread,
} from '#wire/undici';
import { type Scrub, scrubOf } from '#security';
import { PACKAGE_FAILED, pathOfHeaders, type SdkTarget, upstreamPath } from '#config';
import type { DirectEndpoint, TunnelEndpoint } from '#catalog';
import { PiecedBody } from '#http';
import { bodyBytes, type UpstreamExchange, CALL_OVER, type Upstream } from '#call';
import { CONSUMER_HEADER } from '../tunnel-wire.ts';
import { createConsumerTag } from './consumer-tag.ts';
import { createConnectionShares, type ConnectionShares, type ConnectionSlot } from './connection-shares.ts';
import { PulledReply } from './pulled-reply.ts';

interface UpstreamOptions {
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Connections per origin for calls, and the same number for requests that only listen. */
  readonly connectionsMax: number;
}

/** Bytes that wait in memory for a slow reader before the upstream socket is paused. */
const QUEUE_BYTES_MAX = 64 * 1024;

/**
 * Chunks that wait before the socket is paused until the next turn of the event loop. One read of a socket can have ten
 * thousand chunks of one byte, of which each takes several microseconds.
 */
const QUEUE_CHUNKS_MAX = 256;

/** Bytes and time that an upstream may still use after `discard`, before its connection is closed. */
const DISCARD_BYTES_MAX = 16 * 1024;
const DISCARD_MS = 1_000;

/** Disables a timeout for a request. null would mean the pool's default. */
const NO_TIMEOUT = 0;

interface OriginConnections {
  readonly pool: Pool;
  /** Opens a connection for each request, for those that go out once more. Made on first use. */
  readonly fresh: () => Pool;
  readonly shares: ConnectionShares;
  readonly close: () => Promise<unknown>;
}

interface Origin {
  readonly calls: OriginConnections;
  readonly listens: OriginConnections;
}

interface Route extends Origin {
  /** Goes before the path of a request. */
  readonly basePath: string;
  /** The path of a request that has none. */
  readonly ownPath: string;
}

/**
 * Sends requests over HTTP/1.1. Each origin has two connection pools, one for calls and one for requests that only
 * listen, so that listening never makes calls wait.
 */
export function createHttpUpstream(options: UpstreamOptions): Upstream<DirectEndpoint> {
  const { connectionsMax: max, headTimeoutMs, idleTimeoutMs } = options;
  const HttpPool = loadPool();
  const routes = new Map<string, Route>();
  const origins = new Map<string, Origin>();

  const poolOf = (origin: string, more: Pick<Pool.Options, 'pipelining'> = {}): Pool =>
    skipInterimReplies(
      new HttpPool(origin, {
        connections: max,
        headersTimeout: headTimeoutMs,
        bodyTimeout: idleTimeoutMs,
        connect: { timeout: Math.min(headTimeoutMs, 10_000) },
        allowH2: false,
        ...more,
      }),
    );
  const line = (origin: string, waitMs: number): OriginConnections => {
    const pool = noteUnread(poolOf(origin));
    const shares = createConnectionShares({ max, waitMs });
    let fresh: Pool | null = null;
    return {
      pool,
      fresh: () => (fresh ??= poolOf(origin, { pipelining: 0 })),
      shares,
      async close() {
        shares.close();
        await Promise.all([pool.destroy(), fresh?.destroy()]);
      },
    };
  };

  function route(baseUrl: string): Route {
    let entry = routes.get(baseUrl);
    if (!entry) {
      const url = new URL(baseUrl);
      let origin = origins.get(url.origin);
      // A call waits for a connection as long as for the head of its reply. A listening request does not wait, because
      // its client can send it again.
      if (!origin)
        origins.set(url.origin, (origin = { calls: line(url.origin, headTimeoutMs), listens: line(url.origin, 0) }));
      entry = { ...origin, basePath: url.pathname.replace(/\/$/, ''), ownPath: url.pathname };
      routes.set(baseUrl, entry);
    }
    return entry;
  }

  return {
    send(endpoint, request, account) {
      const { calls, listens, basePath, ownPath } = route(endpoint.baseUrl);
      const below = request.path === '' ? ownPath : basePath + request.path;
      const { pool, fresh, shares } = request.listens ? listens : calls;
      const secrets = endpoint.headersAt?.[pathOfHeaders(request.path)] ?? endpoint.headers;
      const headers: Record<string, string> = { ...contentCoding.none, ...request.headers, ...secrets };
      // For any other body undici adds it.
      if (request.body instanceof PiecedBody) headers['content-length'] = String(request.body.byteLength);
      const timeout = request.listens || request.patient ? NO_TIMEOUT : null;
      const sent = {
        method: request.method,
        // Only models have paths with a version of their own. All other paths stay below the base address.
        path: (endpoint.headersAt ? upstreamPath(basePath, request.path) : below) || '/',
        headers,
        // undici also sends what can be iterated, which its types leave out.
        body: request.body as Exclude<typeof request.body, PiecedBody>,
        headersTimeout: timeout ?? endpoint.timeouts?.headMs ?? null,
        bodyTimeout: timeout,
      };
      const again = request.repeatable || request.method === 'GET' ? fresh : null;
      return new HttpExchange(pool, sent, shares, account, secrets, again);
    },
    async close() {
      await Promise.all([...origins.values()].flatMap(({ calls, listens }) => [calls.close(), listens.close()]));
    },
  };
}

/** Adapts undici's callbacks to a promise for the head and to pulled reads. */
class HttpExchange extends PulledReply implements Dispatcher.DispatchHandler, UpstreamExchange {
  #controller: Dispatcher.DispatchController | null = null;
  #paused = false;
  #hasManyChunks = false;
  /** Bytes of the body that have not arrived. */
  #bytesLeft = Infinity;
  #discarding: NodeJS.Timeout | undefined;
  #entry: ConnectionSlot | null = null;
  readonly #secrets: DirectEndpoint['headers'];
  readonly #request: Dispatcher.DispatchOptions;
  /** The connections for a second time; null once it was used, and for a request that must not be repeated. */
  #again: (() => Dispatcher) | null;
  #begunAt = 0;
  sent = false;

  constructor(
    pool: Dispatcher,
    sent: Dispatcher.DispatchOptions,
    shares: Pick<ConnectionShares, 'enter'>,
    account: string,
    secrets: DirectEndpoint['headers'],
    again: (() => Dispatcher) | null = null,
  ) {
    super();
    this.#secrets = secrets;
    this.#request = sent;
    this.#again = again;
    this.#entry = shares.enter(
      account,
      () => void pool.dispatch(sent, this),
      (failure) => this.#fail(failure),
    );
    // The request may have failed already.
    if (this.error !== null) this.#entry.leave();
  }

  get scrub(): Scrub {
    return scrubOf(this.#secrets);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#begunAt = performance.now();
    if (this.error) controller.abort(this.error);
  }

  onRequestSent(): void {
    this.sent = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#bytesLeft = bodyLengthOf(headers);
    this.begun(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#discarding) {
      this.queuedBytes += chunk.byteLength;
      if (this.queuedBytes > DISCARD_BYTES_MAX) this.abort(new Error('the reply went on after its end'));
      return;
    }
    this.queue.push(chunk);
    this.queuedBytes += chunk.byteLength;
    this.#bytesLeft -= chunk.byteLength;
    const isFull = this.queuedBytes > QUEUE_BYTES_MAX || this.queue.length >= QUEUE_CHUNKS_MAX;
    if (isFull && this.#bytesLeft > 0 && !this.#paused) {
      this.#paused = true;
      this.#hasManyChunks = this.queue.length >= QUEUE_CHUNKS_MAX;
      controller.pause();
    }
    this.wakeReader();
  }

  onResponseEnd(): void {
    this.complete = true;
    this.#entry?.leave();
    clearTimeout(this.#discarding);
    this.wakeReader();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const again = this.#again;
    if (again === null || this.error !== null || !wasUnread(error, this.#begunAt))
      return this.#fail(this.error ?? toFailure(error));
    this.#again = null;
    this.sent = false;
    again().dispatch(this.#request, this);
  }

  protected emptied(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#hasManyChunks) setImmediate(() => this.#controller?.resume());
    else this.#controller?.resume();
  }

  abort(reason: Error): void {
    if (this.complete || this.error) return;
    this.#fail(reason);
    this.clearQueue();
    this.#controller?.abort(reason);
  }

  over(): void {
    if (!this.#discarding) this.abort(CALL_OVER);
  }

  discard(): void {
    if (this.complete || this.error) return;
    this.clearQueue();
    if (this.#paused) this.#controller?.resume();
    this.#discarding = setTimeout(() => this.abort(new Error('the reply did not end')), DISCARD_MS);
    this.#discarding.unref();
  }

  #fail(error: Error): void {
    clearTimeout(this.#discarding);
    this.failed(error);
    this.#entry?.leave();
    this.wakeReader();
  }
}

/** The failure for an error of the connection. The message names the kind of failure, but no address. */
function toFailure(error: Error): UpstreamFailure {
  const code = (error as { code?: string }).code ?? '';
  const message = error.message === INTERIM_REFUSED ? TOO_MANY_INTERIM_REPLIES : FAILURES[code];
  return new UpstreamFailure(message ?? 'the connection to the provider failed', {
    retryable: true,
    attributedTo: 'provider',
    unsent: UNSENT.has(code),
    unreachable: UNSENT.has(code),
    timedOut: TIMEOUTS.has(code),
    cause: error,
  });
}

/** Error codes that mean that the connection was never opened, so the request was not sent. */
const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'UND_ERR_CONNECT_TIMEOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  PACKAGE_FAILED,
  'ENETUNREACH',
]);

const TIMEOUTS: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

const FAILURES: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_TIMEOUT: 'the provider did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'the provider fell silent in the middle of its answer',
  UND_ERR_CONNECT_TIMEOUT: 'the provider could not be reached in time',
  UND_ERR_SOCKET: 'the provider closed the connection',
  [PACKAGE_FAILED]: 'its package could not be started',
  ECONNREFUSED: 'the provider refused the connection',
  ECONNRESET: 'the provider reset the connection',
};

interface SdkUpstreamOptions extends UpstreamOptions {
  /** The process of a package, which answers OpenAI's API. */
  readonly open: (target: SdkTarget) => Dispatcher;
  readonly close: () => Promise<void>;
}

/**
 * Bytes of the bodies of running calls that one process has in its memory, beside small ones. A body takes several
 * times its size there, as a prompt and as the request to the vendor.
 */
const BODIES_BYTES_MAX = 48 * 1024 * 1024;
/** A body up to this size waits for no other, so that small calls never wait behind large ones. */
const SMALL_BYTES = 16 * 1024;

interface ProcessShares {
  readonly calls: ConnectionShares;
  /** Of BODIES_BYTES_MAX. */
  readonly bodies: ConnectionShares;
}

/**
 * Sends requests to packages of the AI SDK. A process has as many calls at once as an origin has connections, and their
 * bodies have a bound. Calls beyond either wait, in turns of accounts.
 */
export function createSdkUpstream(options: SdkUpstreamOptions): Upstream<DirectEndpoint> {
  const { connectionsMax: max, headTimeoutMs: waitMs } = options;
  /** By the dispatcher, because a reload may replace it. */
  const shared = new WeakMap<Dispatcher, ProcessShares>();
  const all = new Set<ConnectionShares>();
  const consumerTag = createConsumerTag(randomBytes(32));
  const sharesOf = (dispatcher: Dispatcher): ProcessShares => {
    let shares = shared.get(dispatcher);
    if (shares === undefined) {
      shares = {
        calls: createConnectionShares({ max, waitMs }),
        bodies: createConnectionShares({ max: BODIES_BYTES_MAX, unit: 'bytes', waitMs }),
      };
      shared.set(dispatcher, shares);
      all.add(shares.calls).add(shares.bodies);
    }
    return shares;
  };
  return {
    send(endpoint, request, account) {
      const dispatcher = options.open(endpoint.sdk!);
      const { calls, bodies } = sharesOf(dispatcher);
      const bytes = request.body === null ? 0 : bodyBytes(request.body);
      const isSmall = bytes <= SMALL_BYTES;
      const body = isSmall ? request.body : inPieces(request.body!);
      // Its process shares out what it loads for the calls of many.
      const consumer = consumerTag(endpoint.sdk!.sdk, account);
      const headers: Record<string, string> = { ...request.headers, [CONSUMER_HEADER]: consumer };
      if (body instanceof PiecedBody) headers['content-length'] = String(bytes);
      const timeout = request.patient ? NO_TIMEOUT : null;
      const sent = {
        origin: 'http://ai-sdk',
        method: request.method,
        path: request.path,
        headers,
        body: body as Exclude<typeof body, PiecedBody>,
        headersTimeout: timeout ?? endpoint.timeouts?.headMs ?? null,
        bodyTimeout: timeout,
      };
      const shares = isSmall ? calls : inBoth(bodies, Math.min(bytes, BODIES_BYTES_MAX / 4), calls);
      return new HttpExchange(dispatcher, sent, shares, account, endpoint.headers);
    },
    async close() {
      for (const shares of all) shares.close();
      await options.close();
    },
  };
}

/**
 * The body in pieces, of which each waits until the one before it has left. The session to a process refuses new calls
 * while more than 10 MB wait in it, which is less than two large prompts.
 */
function inPieces(body: Uint8Array | string | PiecedBody): PiecedBody {
  if (body instanceof PiecedBody) return body;
  return new PiecedBody().add(typeof body === 'string' ? Buffer.from(body) : body);
}

/** Enters `first` with a size, and then `second`. */
const inBoth = (first: ConnectionShares, size: number, second: ConnectionShares): Pick<ConnectionShares, 'enter'> => ({
  enter(account, begin, refuse) {
    let entered: ConnectionSlot | null = null;
    const next = () => {
      entered = second.enter(account, begin, refuse);
    };
    const before = first.enter(account, next, refuse, size);
    return {
      leave() {
        before.leave();
        entered?.leave();
      },
    };
  },
});

interface UpstreamWays {
  readonly direct: Upstream<DirectEndpoint>;
  /** Packages of the AI SDK. Default: no offer has one. */
  readonly sdk?: Upstream<DirectEndpoint>;
  readonly tunnel: Upstream<TunnelEndpoint>;
}

/** Sends requests directly or through a tunnel, by the kind of the endpoint. */
export function createUpstream({ direct, sdk, tunnel }: UpstreamWays): Upstream {
  return {
    send(endpoint, request, account, last) {
      if (endpoint.kind === 'tunnel') return tunnel.send(endpoint, request, account, last);
      const way = endpoint.sdk === undefined ? direct : sdk!;
      return way.send(endpoint, request, account, last);
    },
    async close() {
      await Promise.all([direct.close(), sdk?.close(), tunnel.close()]);
    },
  };
}
