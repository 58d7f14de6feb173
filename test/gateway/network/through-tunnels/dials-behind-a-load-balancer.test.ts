import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { TUNNEL_PATH } from '../../../../src/server/config/names.ts';
import { TUNNEL_PROTOCOL } from '../../../../src/gateway/network/tunnel-wire.ts';
import { startSpine } from '../../../support/spine.ts';
import { encodeEnvelope, message, signInHeaders, solanaWallet } from '../../../support/wallets.ts';

test('strangers who fail to dial in keep no provider out that comes through the same load balancer', async () => {
  const spine = await startSpine({
    toml: '[server]\ntrusted_proxies = ["127.0.0.1"]\n[sign_in]\nfailures_per_minute = 3\n',
  });
  const dial = (headers: Record<string, string>, from: string) =>
    new Promise<number>((resolve, reject) => {
      const socket = new WebSocket(`${spine.origin.replace('http', 'ws')}${TUNNEL_PATH}`, TUNNEL_PROTOCOL, {
        headers: { ...headers, 'x-forwarded-for': from },
      });
      socket.once('open', () => (socket.terminate(), resolve(101)));
      socket.once('unexpected-response', (_request, response) => (response.resume(), resolve(response.statusCode!)));
      socket.once('error', reject);
    });
  const [victim, stranger] = [solanaWallet(), solanaWallet()];
  const forged = async (requestId: string) => {
    const text = message(victim, { requestId });
    return { 'sign-in-with-x': encodeEnvelope({ message: text, signature: await stranger.sign(text) }) };
  };
  try {
    for (const id of ['1', '2', '3']) expect(await dial(await forged(id), '192.0.2.1')).toBe(401);
    expect(await dial(await forged('4'), '192.0.2.1')).toBe(429);
    expect(await dial(await signInHeaders(victim), '192.0.2.2')).toBe(101);
  } finally {
    await spine.stop();
  }
});
