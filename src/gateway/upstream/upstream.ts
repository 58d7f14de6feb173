import type { IncomingHttpHeaders } from 'node:http';
import { Pool, type Dispatcher } from 'undici';
import { UpstreamFailure, type Endpoint, type UpstreamRequest } from '../call.ts';

/** One upstream reply as it arrives. */
export interface UpstreamReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The next bytes of the body; null at its end. Throws UpstreamFailure when the reply breaks. At most one read at a time. */
  read(): Promise<Uint8Array | null>;
  /** Stops the exchange; a pending or later read throws `reason`. */
  abort(reason: Error): void;
  /** Nothing more is read: the little that may still come is dropped, so that the connection can serve another call. */
  discard(): void;
}

/** Sends one request to where an offer is served. A directly reached endpoint and a provider's tunnel look the same from here. */
export interface Upstream {
  /** Resolves with the response head. Throws UpstreamFailure when there is none. Aborting `signal` stops the exchange at any time. */
  send(endpoint: Endpoint, request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamReply>;
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly headTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Connections per origin. */
  readonly connectionsMax: number;
}

/** Bytes that wait in memory for a slow reader before the upstream socket is paused. */
const QUEUE_BYTES_MAX = 64 * 1024;

/** What an upstream may still send after its reply was complete before its connection is given up. */
const DISCARD_BYTES_MAX = 16 * 1024;
const DISCARD_MS = 1_000;

/** Reaches endpoints over HTTP/1.1 with one connection pool per origin. */
export function createHttpUpstream(options: UpstreamOptions): Upstream {
  const routes = new Map<string, { pool: Pool; basePath: string }>();
  const pools = new Map<string, Pool>();

  function route(baseUrl: string): { pool: Pool; basePath: string } {
    let found = routes.get(baseUrl);
    if (!found) {
      const url = new URL(baseUrl);
      let pool = pools.get(url.origin);
      if (!pool) {
        pool = new Pool(url.origin, {
          connections: options.connectionsMax,
          headersTimeout: options.headTimeoutMs,
          bodyTimeout: options.idleTimeoutMs,
          connect: { timeout: Math.min(options.headTimeoutMs, 10_000) },
          allowH2: false,
        });
        pools.set(url.origin, pool);
      }
      found = { pool, basePath: url.pathname.replace(/\/$/, '') };
      routes.set(baseUrl, found);
    }
    return found;
  }

  return {
    send(endpoint, request, signal) {
      const { pool, basePath } = route(endpoint.baseUrl);
      const headers = { ...request.headers, ...endpoint.headers };
      const exchange = new HttpExchange(signal);
      pool.dispatch({ method: request.method, path: basePath + request.path, headers, body: request.body }, exchange);
      return exchange.head;
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

/** Turns undici's callbacks into a head promise and pulled reads, with a bounded queue between. */
class HttpExchange implements Dispatcher.DispatchHandler, UpstreamReply {
  readonly head: Promise<UpstreamReply>;
  status = 0;
  headers: IncomingHttpHeaders = {};
  #signal: AbortSignal;
  #onAbort: () => void;
  #controller: Dispatcher.DispatchController | null = null;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #paused = false;
  #ended = false;
  #discarding: NodeJS.Timeout | undefined;
  #error: Error | null = null;
  #resolveHead!: (reply: UpstreamReply) => void;
  #rejectHead!: (error: Error) => void;
  #waiting: { resolve: (chunk: Uint8Array | null) => void; reject: (error: Error) => void } | null = null;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.head = new Promise((resolve, reject) => {
      this.#resolveHead = resolve;
      this.#rejectHead = reject;
    });
    this.#onAbort = () => this.abort(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#error) controller.abort(this.#error);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    this.#resolveHead(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#discarding) {
      this.#queuedBytes += chunk.byteLength;
      if (this.#queuedBytes > DISCARD_BYTES_MAX) this.abort(new Error('the reply went on after its end'));
      return;
    }
    if (this.#waiting) {
      const { resolve } = this.#waiting;
      this.#waiting = null;
      resolve(chunk);
      return;
    }
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.byteLength;
    if (this.#queuedBytes > QUEUE_BYTES_MAX && !this.#paused) {
      this.#paused = true;
      controller.pause();
    }
  }

  onResponseEnd(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#ended = true;
    clearTimeout(this.#discarding);
    this.#waiting?.resolve(null);
    this.#waiting = null;
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(this.#error ?? toFailure(error));
  }

  read(): Promise<Uint8Array | null> {
    const chunk = this.#queue.shift();
    if (chunk) {
      this.#queuedBytes -= chunk.byteLength;
      if (this.#paused && this.#queuedBytes <= QUEUE_BYTES_MAX / 2) {
        this.#paused = false;
        this.#controller?.resume();
      }
      return Promise.resolve(chunk);
    }
    if (this.#error) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  abort(reason: Error): void {
    if (this.#ended || this.#error) return;
    this.#fail(reason);
    this.#queue = [];
    this.#controller?.abort(reason);
  }

  discard(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    if (this.#ended || this.#error) return;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (this.#paused) this.#controller?.resume();
    this.#discarding = setTimeout(() => this.abort(new Error('the reply did not end')), DISCARD_MS);
    this.#discarding.unref();
  }

  #fail(error: Error): void {
    clearTimeout(this.#discarding);
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#error = error;
    this.#rejectHead(error);
    this.#waiting?.reject(error);
    this.#waiting = null;
  }
}

/** What a lost or silent upstream means. The message names the kind of failure and no address. */
function toFailure(error: Error): UpstreamFailure {
  const code = (error as { code?: string }).code ?? '';
  return new UpstreamFailure(FAILURES[code] ?? 'the connection to the provider failed', { retryable: true, blame: 'provider', cause: error });
}

const FAILURES: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_TIMEOUT: 'the provider did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'the provider fell silent in the middle of its answer',
  UND_ERR_CONNECT_TIMEOUT: 'the provider could not be reached in time',
  UND_ERR_SOCKET: 'the provider closed the connection',
  ECONNREFUSED: 'the provider refused the connection',
  ECONNRESET: 'the provider reset the connection',
};
