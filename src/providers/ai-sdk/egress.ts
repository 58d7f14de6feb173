import { performServerHandshake, type IncomingHttpHeaders, type ServerHttp2Stream, constants } from 'node:http2';
import type { IncomingHttpHeaders as Http1Headers, OutgoingHttpHeaders } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { outboundUrlFault } from '#security';
import { createGuardedConnector } from '#network/guarded-fetch';
import { loadAgent, skipInterimReplies } from '#wire/undici';

interface EgressOptions {
  /** For development and tests: every address is permitted. */
  readonly allowPrivate: boolean;
}

/** The way out of the processes of packages, which may open no connection themselves. */
export interface Egress {
  /** Serves the requests that come over a pipe, whose frames are metered. */
  serve(pipe: Duplex, options: PipeOptions): void;
  close(): Promise<void>;
}

interface PipeOptions {
  /** Those that the operator's settings name, which may be private ones. All others must be of the public internet. */
  readonly origins: ReadonlySet<string>;
  /** The process asked for an address that it does not get. `why` goes on after "it". */
  readonly refused: (host: string, why: string) => void;
  /** The process has sent more requests than any use of it explains. */
  readonly flooded: () => void;
}

/** These headers are also in worker/outgoing-fetch.ts, because the program of the process shares no file. */
const FAILURE_HEADER = 'x-tollgate-egress-failure';
const STRANGE_HEADER = 'x-tollgate-egress-strange';

const BODY_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Requests of one process at the same time. Their bodies pass as they come: of each, HTTP/2 has at most 64 KiB on the
 * way, so they never hold more than 64 MiB here.
 */
const STREAMS_MAX = 1_024;
/** Requests of one process that are judged and sent on in one turn of the event loop. The others wait for the next. */
const SERVED_MAX = 16;
/** MiB that the session of one process may hold here. */
const SESSION_MIB = 64;
/** Requests of one process in FLOOD_MS. One for each call is usual. */
const FLOOD_MAX = 20_000;
const FLOOD_MS = 5_000;

/**
 * Makes the way out. A guarded connection looks its name up once, refuses addresses that are not public, and connects
 * to the checked address, as for all other addresses that the operator did not write.
 */
export function createEgress({ allowPrivate }: EgressOptions): Egress {
  const Agent = loadAgent();
  const options = { allowH2: false, headersTimeout: 0, bodyTimeout: 0 } as const;
  const agent = skipInterimReplies(new Agent({ ...options, connect: { timeout: 10_000 } }));
  const guarded = skipInterimReplies(new Agent({ ...options, connect: createGuardedConnector({ allowPrivate }) }));

  function open(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, { origins, refused }: PipeOptions): void {
    if (stream.destroyed || stream.closed) return;
    const url = URL.parse(`${headers[':scheme']}://${headers[':authority']}${headers[':path']}`);
    const own = url !== null && headers[STRANGE_HEADER] === undefined && origins.has(url.origin);
    const fault = url === null ? 'is no URL' : own ? null : outboundUrlFault(url.href, { allowPrivate });
    if (url === null || fault !== null) {
      refused(url?.host ?? '', fault ?? '');
      return refuse(stream, `the URL ${fault}`);
    }
    const length = stream.endAfterHeaders ? 0 : lengthOf(headers);
    if (length === null) return refuse(stream, 'the request has a body without its length');
    if (length > BODY_BYTES_MAX) return refuse(stream, `the body has more than ${BODY_BYTES_MAX} bytes`);
    const sent = sentHeaders(headers);
    if (length > 0) sent['content-length'] = String(length);
    (own ? agent : guarded).dispatch(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: headers[':method'] as Dispatcher.HttpMethod,
        headers: sent,
        // Not the stream itself, which undici would destroy after a failure: the reason is still to be written to it.
        body: length === 0 ? null : (stream.iterator({ destroyOnReturn: false }) as unknown as Readable),
      },
      new OutgoingRequest(stream, (why) => refused(url.host, why)),
    );
  }

  return {
    serve(pipe, options) {
      const session = performServerHandshake(pipe, {
        settings: { maxConcurrentStreams: STREAMS_MAX },
        maxSessionMemory: SESSION_MIB,
      });
      session.on('error', () => session.destroy());
      let requests = 0;
      const counting = setInterval(() => (requests = 0), FLOOD_MS).unref();
      session.on('close', () => clearInterval(counting));
      const inTurns = createTurns();
      session.on('stream', (stream, headers) => {
        stream.on('error', () => {});
        if (requests++ === FLOOD_MAX) return options.flooded();
        inTurns(() => open(stream, headers, options));
      });
    },
    async close() {
      await Promise.all([agent.destroy(), guarded.destroy()]);
    },
  };
}

/** Does SERVED_MAX tasks in each turn of the event loop, in order. The first ones do not wait. */
function createTurns(): (task: () => void) => void {
  const waiting: (() => void)[] = [];
  let done = 0;
  const next = () => {
    done = Math.min(SERVED_MAX, waiting.length);
    for (const task of waiting.splice(0, done)) task();
    if (done > 0) setImmediate(next);
  };
  return (task) => {
    if (done === SERVED_MAX) return void waiting.push(task);
    if (done++ === 0) setImmediate(next);
    task();
  };
}

/** The length of the body; null if the request does not say it. HTTP/2 itself holds the process to it. */
function lengthOf(headers: IncomingHttpHeaders): number | null {
  const length = headers['content-length'];
  return length !== undefined && /^\d{1,15}$/.test(length) ? Number(length) : null;
}

function refuse(stream: ServerHttp2Stream, why: string): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  // What still comes of its body is dropped.
  stream.resume();
  stream.respond({ ':status': 502, [FAILURE_HEADER]: why.replace(/[^\x20-\x7e]/g, '?') }, { endStream: true });
}

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);
/** Written anew for the connection to the vendor. Replies come uncompressed, as the process has no decoder. */
const NOT_SENT: ReadonlySet<string> = new Set(['host', 'content-length', 'accept-encoding', 'expect', STRANGE_HEADER]);

function sentHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const sent: Record<string, string | string[]> = { 'accept-encoding': 'identity' };
  for (const name in headers) {
    const value = headers[name];
    if (name.startsWith(':') || value === undefined || HOP_BY_HOP.has(name) || NOT_SENT.has(name)) continue;
    sent[name] = value;
  }
  return sent;
}

/** Connects a request of a process with the vendor's reply, with backpressure, and gives both up together. */
class OutgoingRequest implements Dispatcher.DispatchHandler {
  readonly #stream: ServerHttp2Stream;
  readonly #refused: (why: string) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #over = false;

  constructor(stream: ServerHttp2Stream, refused: (why: string) => void) {
    this.#stream = stream;
    this.#refused = refused;
    stream.on('close', () => this.#leave());
    stream.on('drain', () => this.#controller?.resume());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(LEFT);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Http1Headers): void {
    if (status < 200 || this.#over) return;
    const reply: OutgoingHttpHeaders = { ':status': status };
    for (const name in headers) if (!HOP_BY_HOP.has(name) && name !== FAILURE_HEADER) reply[name] = headers[name];
    try {
      this.#stream.respond(reply);
    } catch (error) {
      // The reply has a header that HTTP/2 forbids.
      controller.abort(error as Error);
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#over && !this.#stream.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (!this.#over) this.#stream.end();
    this.#over = true;
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#over) return;
    this.#over = true;
    const wasRefused = (error as { refused?: boolean }).refused === true;
    if (wasRefused) this.#refused(error.message);
    if (this.#stream.headersSent) this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    else refuse(this.#stream, wasRefused ? error.message : `the vendor could not be reached (${codeOf(error)})`);
  }

  #leave(): void {
    if (this.#over) return;
    this.#over = true;
    this.#controller?.abort(LEFT);
  }
}

const LEFT = new Error('the request was given up');
const codeOf = (error: NodeJS.ErrnoException): string => error.code ?? error.name;
