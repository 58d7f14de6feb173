import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { TUNNEL_PATH } from '../../../../src/server/config/names.ts';
import { TUNNEL_PROTOCOL } from '../../../../src/gateway/network/tunnel-wire.ts';
import { signInHeaders, signInValue, solanaWallet } from '../../../support/wallets.ts';
import { startWorld, until, type World } from './tunnel-world.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: { readonly error: { readonly message: string; readonly type: string; readonly code: number } };
}

/** Asks for an upgrade and resolves with the HTTP answer that came in its place; null for an upgrade. */
function ask(world: World, headers: Readonly<Record<string, string>>, path = TUNNEL_PATH): Promise<Answer | null> {
  return new Promise((resolve, reject) => {
    const handshake = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-protocol': TUNNEL_PROTOCOL,
    };
    const request = httpRequest(world.url + path, { headers: { ...handshake, ...headers } });
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          body: text.startsWith('{') ? JSON.parse(text) : text,
        }),
      );
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      resolve(null);
    });
    request.on('error', reject);
    request.end();
  });
}

const refusal = (status: number, type: string, message: RegExp) => ({
  status,
  body: { error: { type, code: status, message: expect.stringMatching(message) } },
});

describe('a dial is refused', () => {
  test('without a credential, and with a bad one', async () => {
    const world = await startWorld();
    expect(await ask(world, {})).toMatchObject(refusal(401, 'unauthorized', /API key/));
    expect(await ask(world, { authorization: 'Bearer svc-sk-v2-nonsense' })).toMatchObject(
      refusal(401, 'unauthorized', /Invalid API key/),
    );
    const signed = JSON.parse(Buffer.from(await signInValue(solanaWallet()), 'base64').toString()) as {
      message: string;
      signature: string;
    };
    const other = JSON.parse(Buffer.from(await signInValue(solanaWallet()), 'base64').toString()) as {
      message: string;
      signature: string;
    };
    const forged = Buffer.from(JSON.stringify({ message: signed.message, signature: other.signature })).toString(
      'base64',
    );
    expect(await ask(world, { 'sign-in-with-x': forged })).toMatchObject(refusal(401, 'unauthorized', /signature/i));
    expect(world.told).toEqual(['rejected unauthorized', 'rejected unauthorized', 'rejected unauthorized']);
  });

  test('with its request id in the answer, which closes the connection and says what time it is', async () => {
    const world = await startWorld();
    const answer = await ask(world, { 'x-request-id': 'mine-7' });
    expect(answer!.headers).toMatchObject({
      'x-request-id': 'mine-7',
      connection: 'close',
      'www-authenticate': expect.any(String),
    });
    expect(Math.abs(Date.parse(answer!.headers.date!) - Date.now())).toBeLessThan(60_000);
  });

  test('for another subprotocol, or none', async () => {
    const world = await startWorld();
    const headers = await signInHeaders(solanaWallet());
    for (const protocol of ['', 'mqtt', `${TUNNEL_PROTOCOL}.2`])
      expect(await ask(world, { ...headers, 'sec-websocket-protocol': protocol })).toMatchObject(
        refusal(400, 'invalid_request', /tollgate\.tunnel\.v1/),
      );
    expect(await ask(world, { ...headers, 'sec-websocket-protocol': `mqtt, ${TUNNEL_PROTOCOL}` })).toBeNull();
  });

  test('with a handshake that is none', async () => {
    const world = await startWorld();
    const headers = await signInHeaders(solanaWallet());
    expect(await ask(world, { ...headers, 'sec-websocket-key': 'short' })).toMatchObject(
      refusal(400, 'invalid_request', /Sec-WebSocket-Key/),
    );
  });

  test('with a key that may not do everything', async () => {
    const world = await startWorld();
    for (const restricted of [{ limit: 5_000_000n }, { allowedServices: ['one'] }]) {
      const key = await world.key(restricted);
      expect(await ask(world, { authorization: `Bearer ${key}` })).toMatchObject(
        refusal(403, 'permission_denied', /cannot provide/),
      );
    }
    expect(await ask(world, { authorization: `Bearer ${await world.key()}` })).toBeNull();
  });

  test('with a key of a wallet’s account, which would take the place of the wallet', async () => {
    const world = await startWorld();
    const key = await world.key({ account: solanaWallet().account });
    expect(await ask(world, { authorization: `Bearer ${key}` })).toMatchObject(
      refusal(403, 'permission_denied', /as the wallet itself/),
    );
  });

  test('to who is not on the list of providers', async () => {
    const [one, two, three] = [solanaWallet(), solanaWallet(), solanaWallet()];
    const world = await startWorld({ providers: [one.address, two.accountId] });
    expect(await ask(world, await signInHeaders(one))).toBeNull();
    expect(await ask(world, await signInHeaders(two))).toBeNull();
    expect(await ask(world, await signInHeaders(three))).toMatchObject(
      refusal(403, 'permission_denied', /list of providers/),
    );
  });

  test('when there are as many connections as may be', async () => {
    const world = await startWorld({ limits: { connectionsMax: 1 } });
    await world.dial();
    const answer = await ask(world, await signInHeaders(solanaWallet()));
    expect(answer).toMatchObject(refusal(503, 'internal', /limit of connected providers/));
    expect(answer!.headers['retry-after']).toBe('10');
  });

  test('to one client that would take the places of all', async () => {
    const world = await startWorld({ connectionsPerAddressMax: 1 });
    const first = await world.dial();
    expect(await ask(world, await signInHeaders(solanaWallet()))).toMatchObject(
      refusal(429, 'rate_limit_exceeded', /from your network/),
    );
    first.kill();
    await until(() => world.told.some((line) => line.startsWith('left')));
    expect(await ask(world, await signInHeaders(solanaWallet()))).toBeNull();
  });

  test('to one client that dials for all its places at once', async () => {
    const all = Promise.withResolvers<void>();
    let asked = 0;
    const world = await startWorld({
      connectionsPerAddressMax: 2,
      // All of them are asked who they are before any has connected.
      authenticate: async (authenticate, headers, address) => {
        if ((asked += 1) === 5) all.resolve();
        await all.promise;
        return authenticate(headers, address);
      },
    });
    const dials = await Promise.allSettled(Array.from({ length: 5 }, () => world.dial()));
    expect(dials.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(world.told.filter((line) => line === 'connected')).toHaveLength(2);
    expect(world.told.filter((line) => line === 'rejected rate_limit_exceeded')).toHaveLength(3);
  });

  test('to a provider that opens connection after connection and registers nothing', async () => {
    const world = await startWorld({ limits: { newConnectionsMax: 2 } });
    const wallet = solanaWallet();
    await world.dial({ wallet });
    const second = await world.dial({ wallet });
    expect(await ask(world, await signInHeaders(wallet))).toMatchObject(
      refusal(429, 'rate_limit_exceeded', /have not registered anything/),
    );
    await second.register();
    expect(await ask(world, await signInHeaders(wallet))).toBeNull();
  });

  test('to one client that dials all the time, before anybody looks at its credential', async () => {
    let asked = 0;
    const world = await startWorld({
      authenticate: async (authenticate, headers, address) => {
        asked += 1;
        return authenticate(headers, address);
      },
    });
    let answer = await ask(world, {});
    let dials = 1;
    for (; answer?.status === 401 && dials < 2_000; dials++) answer = await ask(world, {});
    expect(answer).toMatchObject(refusal(429, 'rate_limit_exceeded', /dial too often/));
    expect(answer!.headers['retry-after']).toBe('1');
    expect(dials).toBeGreaterThan(250);
    expect(asked).toBe(dials - 1);
    // A moment later it may dial again.
    const headers = await signInHeaders(solanaWallet());
    let dialled: Answer | null = answer;
    while (dialled?.status === 429) dialled = await ask(world, headers);
    expect(dialled).toBeNull();
    // However often it was refused, the log has it once each time.
    const rejected = world.told.filter((word) => word === 'rejected rate_limit_exceeded');
    expect(rejected.length).toBeLessThanOrEqual(2);
  });

  test('once the gateway shuts down', async () => {
    const world = await startWorld();
    await world.tunnels.close(0);
    expect(await ask(world, await signInHeaders(solanaWallet()))).toMatchObject(
      refusal(503, 'internal', /shutting down/),
    );
  });
});

test('where no WebSocket is asked for, an Upgrade header changes nothing', async () => {
  const world = await startWorld();
  for (const upgrade of ['h2c', 'TLS/1.0', 'websockets'])
    expect(await ask(world, { upgrade }, '/plain')).toMatchObject({ status: 200, body: 'plain' });
  expect(await ask(world, {}, '/plain')).toMatchObject(refusal(426, 'invalid_request', /^\/plain takes no WebSockets/));
  expect(await ask(world, {}, '/nowhere')).toMatchObject(refusal(404, 'not_found', /No such endpoint/));
  expect(await ask(world, { upgrade: 'h2c' })).toMatchObject(refusal(426, 'invalid_request', /tollgate provide/));
});

test('a browser that comes to the address is told what it is for', async () => {
  const world = await startWorld();
  const response = await fetch(world.url + TUNNEL_PATH);
  expect(response.status).toBe(426);
  expect(response.headers.get('upgrade')).toBe('websocket');
  expect(await response.json()).toMatchObject({
    error: { type: 'invalid_request', code: 426, message: expect.stringMatching(/tollgate provide/) },
  });
});

test('a client that leaves while it is asked who it is leaves nothing behind', async () => {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const known = Promise.withResolvers<void>();
  const world = await startWorld({
    limits: { connectionsMax: 1 },
    authenticate: async (authenticate, headers, address) => {
      asked.resolve();
      await gate.promise;
      try {
        return await authenticate(headers, address);
      } finally {
        known.resolve();
      }
    },
  });
  const headers = await signInHeaders(solanaWallet());
  const socket = connect(world.port, '127.0.0.1');
  socket.write(
    `GET ${TUNNEL_PATH} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n` +
      `sec-websocket-protocol: ${TUNNEL_PROTOCOL}\r\nsign-in-with-x: ${headers['sign-in-with-x']}\r\n\r\n`,
  );
  await asked.promise;
  socket.resetAndDestroy();
  await once(socket, 'close');
  gate.resolve();
  await known.promise;
  // The rest of its admission waits for nothing: a turn later it is refused or has connected.
  await new Promise((resolve) => setImmediate(resolve));
  await until(() => !world.told.includes('connected') || world.told.some((line) => line.startsWith('left')));
  const before = world.told.length;
  // It does not count any more.
  const peer = await world.dial();
  expect(await peer.register()).toMatchObject({ type: 'registered' });
  expect(world.tunnels.count()).toEqual({ connections: 1, streams: 0 });
  expect(world.told.slice(before)).toEqual(['connected', 'registered 1']);
});
