import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { BOUNDS, foreignObject, isObject, readStart, retryAfterOf, Timers } from '#wire';
import { oneLine } from '#security';
import { TUNNEL_PATH } from '#config';
import {
  CONTROL_PATH,
  createSocketStream,
  keepAlive,
  type RaisedPrice,
  SOCKET_OPTIONS,
  TUNNEL_PROTOCOL,
} from '#network/tunnel';
import { answerControl, type RegistrationAnswer, type Welcome } from './control.ts';
import type { Log } from './log.ts';
import { type Wallet, signInHeader } from './wallet/wallet.ts';
import type { RouterConfig } from './provider-file.ts';

interface ConnectionOptions {
  readonly router: RouterConfig;
  /** Request headers of the dial. They include the provider's credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the text of the document to register first. */
  readonly document: () => string;
  readonly wallet: Wallet | null;
  /** The most calls that may run at once. The gateway queues the others. */
  readonly streamsMax: number;
  /** The connection counts as lost after this time without a byte from the router. */
  readonly silenceMs: number;
  readonly serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
  /** Called when the gateway has registered the services of these names, so that they can be called. */
  readonly ready: (services: readonly string[]) => void;
  readonly log: Log;
  readonly now: () => number;
}

/** The reason why a connection ended, or why a new one is needed. */
export type ConnectionEnding =
  | { readonly kind: 'lost'; readonly why: string }
  | DialRejection
  | Extract<RegistrationAnswer, { kind: 'refused' }>
  | { readonly kind: 'replaced' }
  /**
   * The router stops, or has banned this provider. Running calls continue on this connection, but a new connection is
   * needed.
   */
  | { readonly kind: 'draining'; readonly banned: string | null };

export interface RouterConnection {
  readonly ending: Promise<ConnectionEnding>;
  /** Settles when the socket is closed. */
  readonly closed: Promise<void>;
  /**
   * Registers another document in place of the first one, while calls run. Resolves with null if the connection ends
   * before the router answers, or cannot be used any more.
   */
  register(document: string): Promise<RegistrationAnswer | null>;
  /** Tells the gateway to send no more calls. Closes when the running calls have ended, at the latest after `ms`. */
  drain(ms: number): void;
  destroy(): void;
}

const HANDSHAKE_MS = 10_000;
/** Timeout for the router's answer to a registration. The first one counts from the open socket. */
const READY_MS = 30_000;
/** Time for the peer to close a finished connection. */
const CLOSE_MS = 2_000;
/** Longest time for which the running calls keep the connection to a draining router open. */
const DRAINED_MS = 15 * 60_000;

/** Flow-control windows: the most unread bytes of one call, and of all calls of the tunnel. */
const STREAM_WINDOW = 256 * 1024;
const TUNNEL_WINDOW = 16 * 1024 * 1024;

/** Dials the router, registers, and serves calls until the connection ends. */
export function connect(options: ConnectionOptions): RouterConnection {
  const { log, streamsMax, silenceMs } = options;
  const ending = Promise.withResolvers<ConnectionEnding>();
  const closed = Promise.withResolvers<void>();
  const socket = dial(options.router, options.headers);
  // Created before the socket opens. The gateway sends its first bytes at once, and they would be lost otherwise.
  const duplex = createSocketStream(socket);
  let session: ServerHttp2Session | null = null;
  let control: { readonly stream: ServerHttp2Stream; readonly end: ReturnType<typeof answerControl> } | null = null;
  let running = 0;
  /** This side is draining. */
  let leaving = false;
  /** The router is draining. */
  let drained = false;
  const timers = new Timers();

  const destroy = () => socket.terminate();
  const end = (how: ConnectionEnding) => {
    // A planned replacement: another connection took over. The calls that still run here are finished here.
    if (how.kind === 'replaced' && (leaving || drained)) return;
    ending.resolve(how);
    if (how.kind !== 'draining') destroy();
    else if (!drained) {
      drained = true;
      timers.later(DRAINED_MS, destroy);
    }
  };
  const lost = (why: string) => end({ kind: 'lost', why });
  const unanswered = () => lost('the router did not register the services in time');

  function onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // Each stream reports its own errors. An unhandled error event would end the process.
    stream.on('error', () => {});
    if (headers[':path'] === CONTROL_PATH && control === null) return openControl(stream);
    running++;
    stream.on('close', () => {
      running--;
      if (leaving && running === 0) finish();
    });
    options.serve(stream, headers);
  }

  function openControl(stream: ServerHttp2Stream): void {
    const ready = timers.later(READY_MS, unanswered);
    const answered = answerControl({
      stream,
      document: options.document,
      wallet: options.wallet,
      router: options.router.domain,
      welcomed: (welcome) => tellWelcome(log, welcome),
      answered(answer) {
        clearTimeout(ready);
        if (answer.kind === 'refused') return end(answer);
        options.ready(answer.services);
        tellRaised(log, answer.raised);
      },
      replaced: () => end({ kind: 'replaced' }),
      draining: (banned) => end({ kind: 'draining', banned }),
      broken: (why) => {
        if (!leaving) lost(why);
      },
    });
    control = { stream, end: answered };
    if (leaving) answered.send({ type: 'draining' });
  }

  /** All calls have ended. Sends what is still buffered, then closes the session. */
  function finish(): void {
    control?.stream.end();
    control?.stream.close();
    session?.close();
    timers.later(CLOSE_MS, destroy);
  }

  socket.on('open', () => {
    session = openSession(duplex, streamsMax);
    session.on('error', (error: Error) => lost(`the tunnel broke: ${error.message}`));
    session.on('goaway', () => {
      end({ kind: 'draining', banned: null });
      leaving = true;
      if (running === 0) finish();
    });
    session.on('close', () => timers.later(CLOSE_MS, destroy));
    session.on('stream', onStream);
    timers.later(HANDSHAKE_MS, () => control ?? lost('the router did not open the control stream'));
  });
  watchSilence(socket, silenceMs, timers, lost);
  socket.on('unexpected-response', (_request, response: IncomingMessage) => {
    timers.later(HANDSHAKE_MS, destroy);
    void readRejection(response, Object.values(options.headers), options.now()).then(end);
  });
  // The duplex emits the socket's errors too. Both need a listener.
  duplex.on('error', () => {});
  socket.on('error', (error) => lost(describeFault(error)));
  socket.on('close', () => {
    timers.clear();
    session?.destroy();
    lost('the router closed the connection');
    closed.resolve();
  });

  return {
    ending: ending.promise,
    closed: closed.promise,
    async register(document) {
      if (control === null || leaving || drained) return null;
      const late = timers.later(READY_MS, unanswered);
      const answer = Promise.race([control.end.register(document), ending.promise.then(() => null)]);
      return answer.finally(() => clearTimeout(late));
    },
    drain(ms) {
      if (session === null) return destroy();
      timers.later(ms, destroy);
      // The router's GOAWAY came before.
      if (leaving) return;
      leaving = true;
      control?.end.send({ type: 'draining' });
      if (running === 0) finish();
    },
    destroy,
  };
}

function tellWelcome(log: Log, { provider, account, version, payouts }: Welcome): void {
  log.info({ provider, account, router_version: version }, 'connected to the router');
  if (payouts !== undefined) log.info({ payouts }, 'how this router pays your earnings');
}

export function tellRaised(log: Log, raised: readonly RaisedPrice[]): void {
  for (const { service, until } of raised)
    log.warn(
      { service, until },
      'its price has more than doubled: until then calls need a max_cost, and others get 422',
    );
}

/** Opens the WebSocket of a tunnel. `headers` have the provider's credential, see credentialHeaders. */
export function dial(router: RouterConfig, headers: Readonly<Record<string, string>>): WebSocket {
  return new WebSocket(tunnelUrl(router.url), [TUNNEL_PROTOCOL], {
    ...SOCKET_OPTIONS,
    headers,
    handshakeTimeout: HANDSHAKE_MS,
    followRedirects: false,
  });
}

function watchSilence(socket: WebSocket, silenceMs: number, timers: Timers, lost: (why: string) => void): void {
  socket.on('upgrade', ({ socket: wire }: IncomingMessage) => {
    const silent = () => lost(`the router was silent for ${silenceMs / 1000} s`);
    timers.add(keepAlive({ wire, silenceMs, ping: pingOf(socket), silent }));
  });
}

/** Sends one WebSocket ping per call. The pong isn't awaited, because `keepAlive` sees any byte that arrives. */
function pingOf(socket: WebSocket): (answered: () => void) => void {
  return (answered) => {
    if (socket.readyState === WebSocket.OPEN) socket.ping();
    answered();
  };
}

function openSession(duplex: Duplex, streamsMax: number): ServerHttp2Session {
  const session = performServerHandshake(duplex, {
    settings: { enablePush: false, maxConcurrentStreams: streamsMax + 1, initialWindowSize: STREAM_WINDOW },
    // HTTP/1.1 servers repeat lines such as `date`. The gateway takes the first.
    strictSingleValueFields: false,
    // The default limits protect a server from unknown clients. This server dialled its only client, and that client
    // resets many streams because its own clients leave. The number of streams and their windows limit the memory.
    maxSessionMemory: 4_096,
    streamResetBurst: 1_000_000,
    streamResetRate: 1_000_000,
  });
  session.setLocalWindowSize(TUNNEL_WINDOW);
  return session;
}

/** The router answered the dial with an HTTP error. */
interface DialRejection {
  readonly kind: 'rejected';
  readonly status: number;
  readonly message: string;
  /** The wait that the router asked for in `Retry-After`. null if it asked for none. */
  readonly retryAfterMs: number | null;
  /** This machine's clock minus the router's clock, from the `Date` header. null if there is no valid one. */
  readonly skewMs: number | null;
}

const ANSWER_BYTES_MAX = 4_096;
const MESSAGE_CHARS_MAX = 500;

/** Reads the answer to a dial. `sent` are the header values with the credential. They are removed from the message. */
async function readRejection(response: IncomingMessage, sent: readonly string[], now: number): Promise<DialRejection> {
  const message = await readMessage(response);
  const { headers, statusCode: status = 0 } = response;
  const seconds = retryAfterOf(headers['retry-after']);
  const date = Date.parse(headers.date ?? '');
  return {
    kind: 'rejected',
    status,
    message: sent
      .reduce((masked, credential) => masked.replaceAll(credential.replace(/^Bearer /, ''), '[redacted]'), message)
      .slice(0, MESSAGE_CHARS_MAX),
    retryAfterMs: seconds === undefined ? null : seconds * 1000,
    skewMs: Number.isNaN(date) ? null : now - date,
  };
}

async function readMessage(response: IncomingMessage): Promise<string> {
  const text = await readStart(response, ANSWER_BYTES_MAX).catch(() => '');
  const error = foreignObject(text, BOUNDS.providerError)?.['error'];
  // What is not JSON, or cut off, says nothing: the status text does.
  return isObject(error) && typeof error['message'] === 'string' ? error['message'] : (response.statusMessage ?? '');
}

/**
 * Describes in one line why a connection failed. If an https:// address speaks no TLS, the library's message doesn't
 * help somebody who mistyped the scheme, so it is replaced.
 */
export function describeFault(error: Error): string {
  // If a host has several addresses, the error is an AggregateError with an empty message. The errors of the addresses
  // are inside.
  const inner = error instanceof AggregateError ? (error.errors[0] as Error | undefined) : undefined;
  const text = error.message || inner?.message || (error as NodeJS.ErrnoException).code || error.name;
  if (/wrong version number|packet length too long/.test(text))
    return "the server doesn't speak TLS; did you mean http://?";
  return oneLine(text);
}

const SIGN_IN_MS = 120_000;

/**
 * Returns the headers that authenticate the provider: the wallet's signature, which is valid for two minutes, or the
 * API key if there is no wallet. Secret.
 */
export async function credentialHeaders(
  { url, domain, apiKey }: RouterConfig,
  wallet: Wallet | null,
  now: number,
  nonce?: string,
): Promise<Readonly<Record<string, string>>> {
  if (wallet === null) return { authorization: `Bearer ${apiKey ?? ''}` };
  // The sign-in names the router's own domain, even if the router is dialled by another name.
  const uri = `${new URL(url).protocol}//${domain}`;
  return {
    'sign-in-with-x': await signInHeader(wallet, {
      domain,
      uri,
      statement: 'Provide services.',
      now,
      lifetimeMs: SIGN_IN_MS,
      nonce,
    }),
  };
}

/**
 * Returns the address of a router's tunnel. The path of the router's address is kept, because a router may be served
 * below a path.
 */
export function tunnelUrl(router: string): string {
  const url = new URL(router);
  url.protocol = url.protocol === 'http:' ? 'ws:' : 'wss:';
  url.pathname = `${url.pathname.replace(/\/$/, '')}${TUNNEL_PATH}`;
  return url.href;
}
