import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { Timers } from '#wire';
import {
  CONTROL_PATH,
  createSocketStream,
  keepAlive,
  SOCKET_OPTIONS,
  TUNNEL_PROTOCOL,
  type RegistrationProblem,
} from '#network/tunnel';
import { describeFault } from './connect-fault.ts';
import { answerControl } from './control.ts';
import { readRejection, type DialRejection } from './dial-rejection.ts';
import type { Log } from './log.ts';
import type { Wallet } from './wallet/wallet.ts';

interface ConnectionOptions {
  /** ws:// or wss:// address of the tunnel. */
  readonly url: string;
  /** With the provider's credential. */
  readonly headers: Readonly<Record<string, string>>;
  readonly document: string;
  readonly wallet: Wallet | null;
  /** The router as the signed registration names it. */
  readonly router: string;
  /** Calls that may run at once; the gateway keeps more waiting. */
  readonly streamsMax: number;
  /** A router that says nothing this long is gone. */
  readonly silenceMs: number;
  /** Takes one call. */
  readonly serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
  /** The services of these names can be called. */
  readonly ready: (services: readonly string[]) => void;
  readonly log: Log;
  readonly now: () => number;
}

/** Why a connection is not, or no longer, the one to have. */
export type Ending =
  | { readonly kind: 'lost'; readonly why: string }
  | DialRejection
  | { readonly kind: 'refused'; readonly message: string; readonly problems: readonly RegistrationProblem[] }
  | { readonly kind: 'replaced' }
  /** The router stops: running calls go on here, and another connection is needed. */
  | { readonly kind: 'draining' };

export interface Connection {
  readonly ending: Promise<Ending>;
  /** Settles when the socket is closed. */
  readonly closed: Promise<void>;
  /** Tells the gateway to send no more calls, and closes when those that run have ended, at the latest after `ms`. */
  drain(ms: number): void;
  /** Closes at once. */
  destroy(): void;
}

const HANDSHAKE_MS = 10_000;
/** From the open socket to the registered services. */
const READY_MS = 30_000;
/** Time for a peer to close a connection that is over. */
const CLOSE_MS = 2_000;
/** How long a router that stops may keep a connection for the calls that run on it. */
const DRAINED_MS = 15 * 60_000;

/** Bytes on their way to a stalled upstream: of one call, and of all calls of the tunnel. */
const STREAM_WINDOW = 256 * 1024;
const TUNNEL_WINDOW = 16 * 1024 * 1024;

/** Dials the router, registers, and serves calls until the connection ends. */
export function connect(options: ConnectionOptions): Connection {
  const { log, streamsMax, silenceMs } = options;
  const ending = Promise.withResolvers<Ending>();
  const closed = Promise.withResolvers<void>();
  const socket = dial(options);
  // Before the socket opens: what the gateway says first would be lost otherwise, and it says it at once.
  const duplex = createSocketStream(socket);
  let session: ServerHttp2Session | null = null;
  let control: { readonly stream: ServerHttp2Stream; readonly end: ReturnType<typeof answerControl> } | null = null;
  let running = 0;
  /** This side stops. */
  let leaving = false;
  /** The router stops. */
  let drained = false;
  const timers = new Timers();

  const destroy = () => socket.terminate();
  const end = (how: Ending) => {
    // Another connection took over as it was meant to: what still runs here is finished here.
    if (how.kind === 'replaced' && (leaving || drained)) return;
    ending.resolve(how);
    if (how.kind !== 'draining') destroy();
    else if (!drained) {
      drained = true;
      timers.later(DRAINED_MS, destroy);
    }
  };
  const lost = (why: string) => end({ kind: 'lost', why });

  function onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // Each stream has its own end; without a listener its error would end the process.
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
    const ready = timers.later(READY_MS, () => lost('the router did not register the services in time'));
    const answered = answerControl({
      stream,
      document: options.document,
      wallet: options.wallet,
      router: options.router,
      welcomed: ({ provider, account, version }) =>
        log.info({ provider, account, router_version: version }, 'connected to the router'),
      registered(services) {
        clearTimeout(ready);
        options.ready(services);
      },
      refused: (message, problems) => end({ kind: 'refused', message, problems }),
      replaced: () => end({ kind: 'replaced' }),
      draining: () => end({ kind: 'draining' }),
      broken: (why) => {
        if (!leaving) lost(why);
      },
    });
    control = { stream, end: answered };
    if (leaving) answered.send({ type: 'draining' });
  }

  /** All calls have ended: what was written is delivered, then both sides let go. */
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
      end({ kind: 'draining' });
      leaving = true;
      if (running === 0) finish();
    });
    session.on('close', () => timers.later(CLOSE_MS, destroy));
    session.on('stream', onStream);
    timers.later(HANDSHAKE_MS, () => {
      if (control === null) lost('the router did not open the control stream');
    });
    if (leaving) finish();
  });
  socket.on('upgrade', ({ socket: wire }: IncomingMessage) => {
    const silent = () => lost(`the router was silent for ${silenceMs / 1000} s`);
    timers.add(keepAlive({ wire, silenceMs, ping: pingOf(socket), silent }));
  });
  socket.on('unexpected-response', (_request, response: IncomingMessage) => {
    timers.later(HANDSHAKE_MS, destroy);
    void readRejection(response, Object.values(options.headers), options.now()).then(end);
  });
  // The duplex fails with the socket; both must be listened to.
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
    drain(ms) {
      if (leaving) return;
      leaving = true;
      control?.end.send({ type: 'draining' });
      if (session === null) return destroy();
      if (running === 0) return finish();
      timers.later(ms, destroy);
    },
    destroy,
  };
}

function dial({ url, headers }: ConnectionOptions): WebSocket {
  return new WebSocket(url, [TUNNEL_PROTOCOL], {
    ...SOCKET_OPTIONS,
    headers,
    handshakeTimeout: HANDSHAKE_MS,
    followRedirects: false,
  });
}

/** A WebSocket ping a turn. The answer is seen in the bytes that come. */
function pingOf(socket: WebSocket): (answered: () => void) => void {
  return (answered) => {
    if (socket.readyState === WebSocket.OPEN) socket.ping();
    answered();
  };
}

function openSession(duplex: Duplex, streamsMax: number): ServerHttp2Session {
  const session = performServerHandshake(duplex, {
    settings: { enablePush: false, maxConcurrentStreams: streamsMax + 1, initialWindowSize: STREAM_WINDOW },
    // Bounds that protect a server from strangers. This one dialled its only client, which cancels as its own
    // clients leave; memory is bounded by the number of streams and their windows.
    maxSessionMemory: 4_096,
    streamResetBurst: 1_000_000,
    streamResetRate: 1_000_000,
  });
  session.setLocalWindowSize(TUNNEL_WINDOW);
  return session;
}
