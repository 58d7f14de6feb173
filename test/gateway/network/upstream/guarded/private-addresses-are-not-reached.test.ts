import { isIP } from 'node:net';
import { createServer } from 'node:net';
import { beforeAll, afterAll, describe, expect, test } from 'vitest';
import {
  createGuardedFetch,
  OutboundFailure,
  type OutboundLookup,
} from '../../../../../src/gateway/network/upstream/guarded-fetch.ts';
import { findFreePort } from '../../../../support/free-port.ts';
import { watchConnectionAttempts } from './connection-attempts.ts';
import { HOSTILE_ADDRESSES, HOSTILE_SPELLINGS } from './hostile-targets.ts';

const CALL = { timeoutMs: 5_000, bodyBytesMax: 1_024 };
const PUBLIC = '93.184.215.14';

let reached = 0;
const servers = [createServer(), createServer()];
let port = 0;
beforeAll(async () => {
  port = await findFreePort();
  for (const [server, host] of [
    [servers[0]!, '127.0.0.1'],
    [servers[1]!, '::1'],
  ] as const) {
    server.on('connection', (socket) => {
      reached += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(port, host, resolve));
  }
});
afterAll(() => {
  for (const server of servers) server.close();
});

const url = (host: string) => `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}/hook`;
const answering =
  (...addresses: readonly string[]): OutboundLookup =>
  async () =>
    addresses.map((address) => ({ address, family: isIP(address) }));
const never: OutboundLookup = () => Promise.reject(new Error('no name should be looked up'));

/** Calls and gives what the call failed with. */
const refusalOf = (target: string, lookup: OutboundLookup) =>
  createGuardedFetch({ allowPrivate: false, lookup })(target, CALL).then(
    () => null,
    (error: unknown) => error,
  );

function expectRefused(error: unknown, attempts: readonly string[]): void {
  expect(error).toBeInstanceOf(OutboundFailure);
  expect(error).toMatchObject({ refused: true });
  expect(attempts).toEqual([]);
  expect(reached).toBe(0);
}

test('the matrix is as large as it is promised to be', () => {
  expect(HOSTILE_ADDRESSES.length + HOSTILE_SPELLINGS.length).toBeGreaterThanOrEqual(120);
});

describe.each(HOSTILE_ADDRESSES)('%s: %s', (_kind, address) => {
  test('is refused where it stands in the URL', async () => {
    const attempts = watchConnectionAttempts();
    expectRefused(await refusalOf(url(address), never), attempts);
  });

  test('is refused where a name leads to it', async () => {
    const attempts = watchConnectionAttempts();
    expectRefused(await refusalOf(url('hook.example.com'), answering(address)), attempts);
  });

  test('is refused where a name leads to it and to a public address', async () => {
    const attempts = watchConnectionAttempts();
    expectRefused(await refusalOf(url('hook.example.com'), answering(PUBLIC, address)), attempts);
    expectRefused(await refusalOf(url('hook.example.com'), answering(address, PUBLIC)), attempts);
  });
});

test.each(HOSTILE_SPELLINGS)('the spelling %s is refused', async (host) => {
  const attempts = watchConnectionAttempts();
  expectRefused(await refusalOf(`https://${host}:${port}/hook`, answering('127.0.0.1', '::1')), attempts);
});

test.each(['127.0.0.1', '::1'])('without the guard %s would be reached, and the attempt be seen', async (address) => {
  const attempts = watchConnectionAttempts();
  const before = reached;
  const open = createGuardedFetch({ allowPrivate: false, lookup: answering(address), permits: () => true });
  await expect(open(url('hook.example.com'), CALL)).rejects.toBeInstanceOf(OutboundFailure);
  expect(attempts).toEqual([address]);
  expect(reached).toBe(before + 1);
  reached = before;
});
