import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { readStart } from '#wire';
import { SOCKET_OPTIONS, TUNNEL_PROTOCOL } from '#network/tunnel';
import { describeFault } from '../connect-fault.ts';
import { credentialHeaders } from '../credential.ts';
import type { RouterConfig } from '../provider-file.ts';
import { tunnelUrl } from '../tunnel-url.ts';
import type { Wallet } from '../wallet/wallet.ts';
import { ask, wordsOf } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

const DIAL_MS = 10_000;
const ANSWER_BYTES_MAX = 4_096;

/**
 * Checks that a WebSocket reaches the router through all proxies on the way. Nothing is registered, so running proxies
 * are not disturbed.
 */
export function tunnelCheck(router: RouterConfig, wallet: Wallet | null, now: () => number): Check {
  const url = tunnelUrl(router.url);
  return {
    kind: 'tunnel',
    name: url,
    async run() {
      await dial(url, await credentialHeaders(router, wallet, now()));
      await checkHost(router.url);
      return 'a WebSocket gets through';
    },
  };
}

async function dial(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = new WebSocket(url, [TUNNEL_PROTOCOL], {
    ...SOCKET_OPTIONS,
    headers,
    handshakeTimeout: DIAL_MS,
    followRedirects: false,
  });
  const refuse = (message: string) => reject(new ProbeFailure(message));
  socket.on('open', resolve);
  socket.on('error', (error) => refuse(`no WebSocket can be opened: ${describeFault(error)}`));
  socket.on(
    'unexpected-response',
    (_request, response: IncomingMessage) => void refusalOf(response).then(refuse, refuse),
  );
  try {
    await promise;
  } finally {
    socket.terminate();
  }
}

/** Describes why the dial was refused. An answer without the router's JSON comes from a server on the way. */
async function refusalOf(response: IncomingMessage): Promise<string> {
  const { statusCode: status } = response;
  const text = await readStart(response, ANSWER_BYTES_MAX);
  const words = wordsOf(text, 600);
  const own = text.startsWith('{"error"') && words !== '';
  return own
    ? `a WebSocket is refused with status ${status}: ${words}`
    : `another server than the router answered the WebSocket with status ${status}: do the proxies between this machine and the router forward WebSockets?`;
}

/**
 * The router refuses MCP and A2A if the request's Host isn't one of its own names. A proxy on the way may have changed
 * the Host.
 */
async function checkHost(router: string): Promise<void> {
  const { status, text } = await ask({ method: 'GET', url: `${router}/mcp` });
  if (status === 403 && text.includes('The host'))
    throw new ProbeFailure(
      `a WebSocket reaches the router, but requests of its clients will not: ${wordsOf(text, 600)}`,
    );
}
