import { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, constants } from 'node:http2';

/*
 * `fetch` for a package. This process may open no connection, so each request goes through the pipe to the process that
 * started it, which connects and judges the address.
 */

/** A header of a request or reply between the two processes. Reasons: see egress.ts, which writes and reads them. */
export const FAILURE_HEADER = 'x-tollgate-egress-failure';
/** The request is for an address that a consumer named, so it may not go to the operator's own addresses. */
export const STRANGE_HEADER = 'x-tollgate-egress-strange';

const REDIRECTS_MAX = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Headers of an HTTP/1 connection, which HTTP/2 forbids. The other process writes its own. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'te',
]);
/** A reply with these states has no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Makes a `fetch` over the session. `strange`: see STRANGE_HEADER. */
export function createFetch(session: ClientHttp2Session, strange = false): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = request.body === null ? null : Buffer.from(await request.arrayBuffer());
    let url = new URL(request.url);
    let headers = new Headers(request.headers);
    for (let redirects = 0; ; redirects++) {
      const response = await send(session, url, { request, headers, body, strange });
      const to = response.headers.get('location');
      if (!REDIRECTS.has(response.status) || to === null || request.redirect === 'manual') return response;
      await response.body?.cancel();
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (request.redirect === 'error' || !isRead || redirects === REDIRECTS_MAX)
        throw new TypeError('fetch failed: the reply is a redirect that is not followed');
      const next = new URL(to, url);
      // Keys are for the vendor that the operator chose, not for where it points.
      if (next.origin !== url.origin) headers = new Headers({ accept: headers.get('accept') ?? '*/*' });
      url = next;
    }
  };
}

interface FetchRequest {
  readonly request: Request;
  readonly headers: Headers;
  readonly body: Buffer | null;
  readonly strange: boolean;
}

function send(
  session: ClientHttp2Session,
  url: URL,
  { request, headers, body, strange }: FetchRequest,
): Promise<Response> {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return Promise.reject(new TypeError(`fetch failed: ${url.protocol} is not supported`));
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  if (request.signal.aborted) return Promise.reject(request.signal.reason as Error);
  const sent: Record<string, string> = {};
  for (const [name, value] of headers) if (!NOT_SENT.has(name)) sent[name] = value;
  const stream = session.request(
    {
      ':method': request.method,
      ':scheme': url.protocol.slice(0, -1),
      ':authority': url.host,
      ':path': `${url.pathname}${url.search}`,
      ...sent,
      ...(strange ? { [STRANGE_HEADER]: '1' } : {}),
      ...(body === null ? {} : { 'content-length': String(body.byteLength) }),
    },
    { endStream: body === null },
  );
  let failure: unknown = null;
  // Both functions hold the request until its stream is closed: once a request is collected, its signal never aborts.
  const stop = () => {
    failure = request.signal.reason;
    stream.close(constants.NGHTTP2_CANCEL);
  };
  request.signal.addEventListener('abort', stop, { once: true });
  stream.on('error', (error) => {
    failure ??= error;
  });
  stream.on('close', () => {
    request.signal.removeEventListener('abort', stop);
    reject(failure ?? new TypeError('fetch failed: the connection broke off'));
  });
  stream.on('response', (replied) => {
    const status = replied[':status']!;
    const refused = replied[FAILURE_HEADER];
    if (typeof refused === 'string') {
      failure = new TypeError(`fetch failed: ${refused}`);
      return stream.close();
    }
    const content = WITHOUT_BODY.has(status) ? null : bodyOf(stream, () => failure);
    if (content === null) stream.resume();
    resolve(new Response(content, { status, headers: headersOf(replied) }));
  });
  if (body !== null) stream.end(body);
  return promise;
}

function headersOf(replied: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(replied)) {
    if (name.startsWith(':') || value === undefined) continue;
    for (const one of [value].flat()) headers.append(name, one);
  }
  return headers;
}

function bodyOf(stream: ClientHttp2Stream, failure: () => unknown): ReadableStream<Uint8Array<ArrayBuffer>> {
  // A controller throws once its stream is closed or cancelled.
  let over = false;
  return new ReadableStream(
    {
      start(controller) {
        stream.on('data', (chunk: Buffer<ArrayBuffer>) => {
          if (over) return;
          controller.enqueue(new Uint8Array(chunk));
          if ((controller.desiredSize ?? 0) <= 0) stream.pause();
        });
        stream.on('end', () => {
          if (over || stream.rstCode !== constants.NGHTTP2_NO_ERROR) return;
          over = true;
          controller.close();
        });
        stream.on('close', () => {
          if (over) return;
          over = true;
          controller.error(failure() ?? new TypeError('the reply broke off'));
        });
      },
      pull: () => void stream.resume(),
      cancel() {
        over = true;
        stream.close(constants.NGHTTP2_CANCEL);
      },
    },
    { highWaterMark: 64 * 1024, size: (chunk) => chunk.byteLength },
  );
}
