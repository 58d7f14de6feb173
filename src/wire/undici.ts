import { createRequire } from 'node:module';
import type { Agent, Dispatcher, Pool } from 'undici';

/*
 * The private parts of undici that tollgate uses, all in this file: single files of the package, because its index
 * loads 109 of them, with caches, mocks, fetch and WebSocket; and the parser of a connection, because undici has no
 * setting for interim replies. test/gateway/upstream/undici-private-parts.test.ts has the version with which they were
 * checked.
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

/** The part of undici's parser for HTTP/1.1 that is replaced: its callback for a complete head. */
interface ReplyParser {
  onHeadersComplete(status: number, upgrade: boolean, shouldKeepAlive: boolean): number;
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
  const { kSocket, kParser } = require('undici/lib/core/symbols.js') as Record<string, symbol>;
  dispatcher.on('connect', (_origin, targets) => {
    const client = targets.at(-1) as Record<symbol, Record<symbol, ReplyParser>>;
    const parser = client[kSocket!]![kParser!]!;
    let interim = 0;
    const complete = parser.onHeadersComplete;
    const skipInterim: typeof complete = (status, upgrade, shouldKeepAlive) => {
      interim = status < 200 ? interim + 1 : 0;
      const refused = interim > INTERIM_REPLIES_MAX;
      const told = refused ? CONTINUE : status === CONTINUE ? EARLY_HINTS : status;
      return complete.call(parser, told, upgrade, shouldKeepAlive);
    };
    parser.onHeadersComplete = skipInterim;
  });
  return dispatcher;
}

/** The message of undici's error. */
export const INTERIM_REFUSED = 'bad response';

/** The text of the call's error. */
export const TOO_MANY_INTERIM_REPLIES = `the provider sent more than ${INTERIM_REPLIES_MAX} interim replies, such as 100 Continue, before its reply`;
