import type { IncomingHttpHeaders as Http1Headers } from 'node:http';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { type HttpTarget, keyHeaders, upstreamPath } from '#config';
import { type ProxyFailure, REPEATABLE_HEADER } from '#network/tunnel';
import { bodyLengthOf } from '#wire';
import { oneLine } from '#security';
import { wasUnread } from '#wire/undici';
import { breakOff, refuse, takeBody } from './call-stream.ts';

/**
 * Forwards one call to its service. `rest` is the part of the path after the service, as parseServicePath returns it.
 */
export type Forward = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rest: string) => void;

interface ForwardOptions {
  readonly target: HttpTarget;
  /** Default: paths are below the base. `model`: they may have a version of their own. `agent`: see pathOfAgent. */
  readonly paths?: 'model' | 'agent';
  /** The path below the base that the file of an agent names. */
  readonly rpcPath?: string | null;
  /** Pool of connections to upstreams, shared by all calls. */
  readonly dispatcher: Dispatcher;
  /** Opens a connection for each request that goes out once more. Absent: none does. */
  readonly fresh?: Dispatcher;
  /** Called when the upstream fails. `error` is for the provider's own log. */
  readonly failed: (failure: ProxyFailure, error: Error, requestId: string | null) => void;
  /** Called when the upstream answers with an error. Default: nobody is told. */
  readonly refused?: (refusal: UpstreamRefusal) => void;
}

export interface UpstreamRefusal {
  readonly status: number;
  /** Its first words, in one line. */
  readonly replyText: string;
  /** The `x-request-id` that the upstream got. */
  readonly requestId: string | null;
}

/**
 * Creates a function that forwards calls to an HTTP service. Bodies pass unchanged, with backpressure in both
 * directions. If the call is cancelled, the upstream request is aborted.
 */
export function createForward({
  target,
  paths,
  rpcPath = null,
  dispatcher,
  fresh,
  failed,
  refused,
}: ForwardOptions): Forward {
  const url = new URL(target.url);
  const base = url.pathname.replace(/\/$/, '');

  return (stream, headers, rest) => {
    const method = headers[':method'] ?? '';
    if (!METHODS.has(method) || leavesBase(rest)) return refuse(stream, 'unknown_service');
    const query = rest.includes('?') ? '' : url.search;
    const relative = paths === 'agent' && rest !== rpcPath ? pathOfAgent(base, rest) : rest;
    const below = relative === '' ? url.pathname : base + relative;
    const path = `${paths === 'model' ? upstreamPath(base, rest) : below}${query}`;
    takeBody(stream, (body) => {
      const sent = {
        origin: url.origin,
        path: path.startsWith('/') ? path : `/${path}`,
        method,
        headers: requestHeaders(headers, body, Object.entries(keyHeaders(target.apiKey, rest)).flat()),
        body,
      };
      const isWhole = body === null || Buffer.isBuffer(body);
      const again =
        fresh && isWhole && (headers[REPEATABLE_HEADER] !== undefined || method === 'GET')
          ? () => fresh.dispatch(sent, exchange)
          : null;
      const requestId = headers['x-request-id'];
      const report = { failed, refused, requestId: typeof requestId === 'string' ? requestId : null };
      const exchange = new RequestAdapter(stream, body, report, again);
      dispatcher.dispatch(sent, exchange);
    });
  };
}

/**
 * The path below the base. The gateway does not know the base, so it calls an agent by the whole path of the address in
 * its card, which begins with the base.
 */
const pathOfAgent = (base: string, rest: string): string =>
  base !== '' && rest.startsWith(base) && ['/', '?', ''].includes(rest.charAt(base.length))
    ? rest.slice(base.length)
    : rest;

/**
 * The methods that a gateway uses. TRACE is excluded because its reply would show the upstream's key to the gateway.
 */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE']);

/**
 * A path with `..` in it could leave the part of the upstream that is on offer. Some upstreams decode twice, and some
 * cut a segment at its semicolon first, so the test covers these forms too.
 */
export function leavesBase(rest: string): boolean {
  if (rest !== '' && rest[0] !== '/' && rest[0] !== '?') return true;
  const path = rest.split('?', 1)[0]!;
  return /[.%\\]/.test(path) && DOTS.test(path);
}
const DOTS = /(?:^|[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e)(?:\.|%(?:25)*2e|$|[/\\;#]|%(?:25)*(?:2f|5c|3b|23))/i;

/** Headers that belong to one connection. The next connection gets its own. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
];
/** A caller's credentials are for the gateway, so the provider's upstream doesn't get them. */
const CREDENTIALS = [
  'authorization',
  'cookie',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'x-admin-key',
  'sign-in-with-x',
  'x-sign-in-with-x',
  'x-siwx',
  'payment-signature',
  'x-payment',
];
/** Some upstreams let these headers override the path, the method, the client's address or the owner of the key. */
const OVERRIDES = [
  'forwarded',
  'openai-organization',
  'openai-project',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-forwarded-uri',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-url',
  'x-real-ip',
  'x-rewrite-url',
];
const NOT_SENT: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ...CREDENTIALS,
  ...OVERRIDES,
  'host',
  'expect',
  'content-length',
]);
const NOT_RETURNED: ReadonlySet<string> = new Set(HOP_BY_HOP);
const OURS = 'x-tollgate-';

function requestHeaders(
  headers: IncomingHttpHeaders,
  body: Buffer | Readable | null,
  credential: readonly string[],
): string[] {
  const sent = [...credential];
  for (const name in headers) {
    if (name[0] === ':' || NOT_SENT.has(name) || name.startsWith(OURS)) continue;
    const value = headers[name];
    if (typeof value === 'string') sent.push(name, value);
    else if (value !== undefined) for (const each of value) sent.push(name, each);
  }
  // undici writes the length of a Buffer itself.
  const length = headers['content-length'];
  if (typeof length === 'string' && body !== null && !Buffer.isBuffer(body)) sent.push('content-length', length);
  return sent;
}

function replyHeaders(status: number, headers: Http1Headers): OutgoingHttpHeaders {
  // A header with several lines is a list, which the type of Node does not show.
  const names = [headers.connection ?? []].flat().flatMap((line) =>
    line
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
  const reply: OutgoingHttpHeaders = { ':status': status };
  for (const name in headers) {
    if (NOT_RETURNED.has(name) || name.startsWith(OURS) || names.includes(name)) continue;
    reply[name] = headers[name];
  }
  return reply;
}

interface FailureReport extends Pick<ForwardOptions, 'failed'> {
  readonly refused: ForwardOptions['refused'];
  readonly requestId: string | null;
}

/** Bytes of an error of an upstream that are read for the log. */
const SAID_BYTES = 1_024;
const SAID_CHARS = 200;
/** Redirects are not followed, so they are failures too. */
const ERROR = 300;

export class FirstWords {
  #text = '';

  add(chunk: Buffer): void {
    if (this.#text.length < SAID_BYTES) this.#text += chunk.toString('utf8', 0, SAID_BYTES);
  }

  get line(): string {
    return firstWords(this.#text);
  }
}

/** Cut before a word, so that no part of a secret is left that the log would not know. */
function firstWords(text: string): string {
  const words = oneLine(text);
  return words.length <= SAID_CHARS ? words : `${words.slice(0, SAID_CHARS - 1).replace(/[^\s"']*$/, '')}…`;
}

/** One call: connects a stream of the tunnel with a request to an upstream. */
class RequestAdapter implements Dispatcher.DispatchHandler {
  readonly #stream: ServerHttp2Stream;
  readonly #body: Buffer | Readable | null;
  readonly #report: FailureReport;
  #status = 0;
  readonly #firstWords = new FirstWords();
  #controller: Dispatcher.DispatchController | null = null;
  /** Bytes of the reply's body that have not arrived. */
  #bytesLeft = Infinity;
  #isGone = false;
  #ended = false;
  /** Sends the request a second time; null once it was used, and for a request that must not be repeated. */
  #again: (() => void) | null;
  #begunAt = 0;

  constructor(
    stream: ServerHttp2Stream,
    body: Buffer | Readable | null,
    report: FailureReport,
    again: (() => void) | null,
  ) {
    this.#again = again;
    this.#stream = stream;
    this.#body = body;
    this.#report = report;
    const leave = () => this.#leave();
    stream.on('aborted', leave);
    stream.on('close', leave);
    stream.on('drain', () => this.#controller?.resume());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#begunAt = performance.now();
    if (this.#isGone) controller.abort(CANCELLED);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Http1Headers): void {
    // Replies such as 100 Continue are only for this proxy.
    if (status < 200 || this.#isGone) return;
    this.#bytesLeft = bodyLengthOf(headers);
    this.#status = status;
    try {
      this.#stream.respond(replyHeaders(status, headers));
    } catch (error) {
      // The reply has a header that HTTP/2 forbids, such as two lengths.
      controller.abort(error as Error);
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytesLeft -= chunk.byteLength;
    if (this.#status >= ERROR) this.#firstWords.add(chunk);
    if (!this.#isGone && !this.#stream.write(chunk) && this.#bytesLeft > 0) controller.pause();
  }

  onResponseEnd(): void {
    this.#ended = true;
    const { refused, requestId } = this.#report;
    if (this.#status >= ERROR) refused?.({ status: this.#status, replyText: this.#firstWords.line, requestId });
    if (!this.#isGone) this.#stream.end();
    if (this.#body !== null && !Buffer.isBuffer(this.#body)) this.#body.destroy();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#again !== null && !this.#isGone && wasUnread(error, this.#begunAt)) {
      const again = this.#again;
      this.#again = null;
      return again();
    }
    this.#ended = true;
    if (this.#isGone) return;
    const failure = this.#classify(error);
    this.#report.failed(failure, error, this.#report.requestId);
    if (this.#stream.headersSent) breakOff(this.#stream);
    else refuse(this.#stream, failure);
  }

  #classify(error: Error): ProxyFailure {
    if ((error as { code?: string }).code === 'UND_ERR_HEADERS_TIMEOUT') return 'upstream_timeout';
    // Without a connection the request was not sent.
    return this.#controller === null ? 'upstream_unreachable' : 'upstream_broken';
  }

  /** The gateway cancelled the call, or the tunnel is lost. */
  #leave(): void {
    if (this.#ended || this.#isGone) return;
    this.#isGone = true;
    this.#controller?.abort(CANCELLED);
    if (this.#body !== null && !Buffer.isBuffer(this.#body)) this.#body.destroy();
  }
}
const CANCELLED = new Error('the call was cancelled');
