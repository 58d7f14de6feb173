import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import { isObject, type JsonObject, readStart } from '#wire';
import { oneLine } from '#security';
import { credentialHeaders, describeFault, dial, tunnelUrl } from '../connection.ts';
import type { RouterConfig } from '../provider-file.ts';
import type { Wallet } from '../wallet/wallet.ts';
import { createOwnPages } from './own-pages.ts';
import { ask, mustSucceed, wordsOf, ProbeFailure, type Check } from './ask.ts';

/** Checks that the router can be reached and accepts the credential. Shows who the provider is there. */
export function routerChecks(router: RouterConfig, wallet: Wallet | null, now: () => number): readonly Check[] {
  const credential = wallet === null ? 'API key' : 'wallet';
  return [
    wallet === null
      ? {
          kind: 'API key',
          name: 'router.api_key',
          run: async () => 'is set, so this provider signs in with it and not with a wallet',
        }
      : { kind: 'wallet', name: wallet.chainId, run: async () => `this provider is ${wallet.providerId}` },
    {
      kind: 'router',
      name: router.url,
      async run() {
        const answer = await ask({ method: 'GET', url: `${router.url}/api/v1/ping` });
        mustSucceed(answer);
        if (!answer.text.includes('pong'))
          throw new ProbeFailure('answers, but is not a tollgate router. Check router.url');
        return `answers, and accepts the ${credential}. ${payoutsIn(await createOwnPages(router, wallet, now).get('/provider/services'))}`;
      },
    },
    tunnelCheck(router, wallet, now),
  ];
}

const PAYOUTS_MAX = 1_000;

function payoutsIn({ payout_terms: terms }: JsonObject): string {
  return isObject(terms) && typeof terms['summary'] === 'string'
    ? oneLine(terms['summary']).slice(0, PAYOUTS_MAX)
    : 'It does not say how it pays earnings: ask its operator before you sell';
}

const ANSWER_BYTES_MAX = 4_096;

/**
 * Checks that a WebSocket reaches the router through all proxies on the way. Nothing is registered, so running proxies
 * are not disturbed.
 */
function tunnelCheck(router: RouterConfig, wallet: Wallet | null, now: () => number): Check {
  return {
    kind: 'tunnel',
    name: tunnelUrl(router.url),
    async run() {
      await mustOpen(dial(router, await credentialHeaders(router, wallet, now())));
      await checkHost(router.url);
      return 'a WebSocket gets through';
    },
  };
}

/** Waits until the WebSocket is open, and closes it. Rejects with ProbeFailure if it does not open. */
async function mustOpen(socket: WebSocket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
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
