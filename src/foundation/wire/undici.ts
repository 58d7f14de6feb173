import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import type { Agent, Dispatcher, Pool } from 'undici';

/*
 * The private parts of undici that tollgate uses, all in this file: single files of the package, because its index
 * loads 109 of them, with caches, mocks, fetch and WebSocket; and the parser of a connection, because undici has no
 * setting for interim replies. test/gateway/network/upstream/undici-private-parts.test.ts has the version with which
 * they were checked.
 */

const require = createRequire(import.meta.url);

/** Loads the class `Pool` of undici, from 21 files. */
export const loadPool = (): typeof Pool => require('undici/lib/dispatcher/pool.js') as typeof Pool;

/** Loads the class `Agent` of undici, from 22 files. */
export const loadAgent = (): typeof Agent => require('undici/lib/dispatcher/agent.js') as typeof Agent;

/** Loads the function `request` of undici. */
export const loadRequest = (): Dispatcher['request'] =>
  require('undici/lib/api/api-request.js') as Dispatcher['request'];

/** Emits `connect` for each new connection, as every dispatcher of undici does. */
interface Connecting {
  on(event: 'connect', listener: (origin: URL, targets: readonly object[]) => void): unknown;
}

/** The parts of undici's parser for HTTP/1.1 that are replaced: its callbacks for the parts of a reply. */
interface ReplyParser {
  onMessageBegin(): number;
  onHeadersComplete(status: number, upgrade: boolean, shouldKeepAlive: boolean): number;
  onMessageComplete(): number;
}

/** Calls `open` for each new connection that speaks HTTP/1.1. One that speaks HTTP/2 has no parser. */
function onConnection(dispatcher: Connecting, open: (parser: ReplyParser, socket: Socket) => void): void {
  const { kSocket, kParser } = require('undici/lib/core/symbols.js') as Record<string, symbol>;
  dispatcher.on('connect', (_origin, targets) => {
    const client = targets.at(-1) as Record<symbol, (Socket & Record<symbol, ReplyParser | undefined>) | undefined>;
    const socket = client[kSocket!];
    const parser = socket?.[kParser!];
    if (parser) open(parser, socket);
  });
}

/**
 * Interim replies (status 100 to 199) before one reply. Each starts the timeout for the head again, so without a limit
 * a server could keep a call waiting for ever. A server that sends 102 every ten seconds may take 16 minutes.
 */
export const INTERIM_REPLIES_MAX = 100;

const CONTINUE = 100;
/** Ignored by undici. */
const EARLY_HINTS = 103;

/**
 * Makes a dispatcher of undici ignore `100 Continue`, like the other interim replies. undici closes the connection
 * instead, but a client must accept it, although it asked for nothing (RFC 9110, 15.2). undici has no setting for this,
 * so the parser of each new connection sees 103 instead. After INTERIM_REPLIES_MAX of them the connection is closed
 * with undici's error for 100: INTERIM_REFUSED.
 */
export function skipInterimReplies<D extends Connecting>(dispatcher: D): D {
  onConnection(dispatcher, (parser) => {
    let interim = 0;
    const complete = parser.onHeadersComplete;
    const skipInterim: typeof complete = (status, upgrade, shouldKeepAlive) => {
      interim = status < 200 ? interim + 1 : 0;
      const refused = interim > INTERIM_REPLIES_MAX;
      const interimStatus = refused ? CONTINUE : status === CONTINUE ? EARLY_HINTS : status;
      return complete.call(parser, interimStatus, upgrade, shouldKeepAlive);
    };
    parser.onHeadersComplete = skipInterim;
  });
  return dispatcher;
}

/** The server closed the connection. A timeout closes it from here, and its request may well have been read. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** Errors of connections that ended before the first byte of a reply, after earlier replies. */
const UNREAD = new WeakSet<Error>();

/**
 * Makes a dispatcher of undici note which errors are of a connection that had served before, and ended without a byte
 * of the next reply. Servers close connections that are idle, and a request that meets the closing is not read.
 */
export function noteUnread<D extends Connecting>(dispatcher: D): D {
  onConnection(dispatcher, (parser, socket) => {
    let served = false;
    let begun = false;
    let isInterim = false;
    const { onMessageBegin: begin, onHeadersComplete: head, onMessageComplete: complete } = parser;
    const onMessageBegin = () => {
      begun = true;
      return begin.call(parser);
    };
    const onHeadersComplete: typeof head = (status, upgrade, shouldKeepAlive) => {
      isInterim = status < 200;
      return head.call(parser, status, upgrade, shouldKeepAlive);
    };
    const onMessageComplete = () => {
      // What follows an interim reply is a part of the same answer.
      begun = isInterim;
      served ||= !isInterim;
      return complete.call(parser);
    };
    Object.assign(parser, { onMessageBegin, onHeadersComplete, onMessageComplete });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (served && !begun && CLOSED.has(error.code)) UNREAD.add(error);
    });
  });
  return dispatcher;
}

/**
 * A server closes an idle connection at the moment at which the request meets it. One that was silent for longer may
 * have read the request, and may be at work for it: load balancers close such connections too.
 */
const UNREAD_MS_MAX = 1_000;

/**
 * Whether a request failed on a connection that had served before, within a second and without a byte of its reply, see
 * noteUnread. `begunAt`: when the request began on it, by `performance.now()`.
 */
export const wasUnread = (error: Error, begunAt: number): boolean =>
  UNREAD.has(error) && performance.now() - begunAt <= UNREAD_MS_MAX;

/** The message of undici's error. */
export const INTERIM_REFUSED = 'bad response';

export const TOO_MANY_INTERIM_REPLIES = `the provider sent more than ${INTERIM_REPLIES_MAX} interim replies, such as 100 Continue, before its reply`;
