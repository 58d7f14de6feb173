import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKey } from '#auth';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { request } from './rpc-world.ts';

// Failed sign-ins are counted by the client's own address, through the endpoint as at the route itself, and nobody
// can be counted as somebody else.

const TOML = `${UNHURRIED}\n[sign_in]\nfailures_per_minute = 3\n`;
let open: Spine;
let behind: Spine;
beforeAll(async () => {
  open = await startSpine({ toml: TOML });
  behind = await startSpine({ toml: TOML, env: { TOLLGATE_TRUSTED_PROXIES: '127.0.0.1' } });
});
afterAll(async () => {
  await open.stop();
  await behind.stop();
});

/** Well formed and nobody's: one that is mistyped is refused without being looked up. */
const newKey = () => createKey('live').text;
let spoofed = 0;

/** The error code of an entry, or the HTTP status of a page, as seen from an address of this machine. */
function from(
  spine: Spine,
  localAddress: string,
  path: '/rpc' | '/key',
  headers: Record<string, string> = {},
): Promise<number> {
  const body = path === '/rpc' ? JSON.stringify(request(1, 'account/key')) : '';
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${spine.url}${path}`,
      {
        method: path === '/rpc' ? 'POST' : 'GET',
        localAddress,
        agent: false,
        headers: { authorization: `Bearer ${newKey()}`, 'content-type': 'application/json', ...headers },
      },
      (response) => {
        let text = '';
        response.on('data', (bytes: Buffer) => (text += bytes.toString()));
        response.on('end', () =>
          resolve(
            path === '/rpc' ? (JSON.parse(text) as { error: { code: number } }).error.code : response.statusCode!,
          ),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

const WRONG = -32010;
const TOO_MANY = -32016;

test('an address that failed too often is refused, here and at the door; others are not', async () => {
  for (let tries = 0; tries < 3; tries += 1) expect(await from(open, '127.0.0.2', '/rpc')).toBe(WRONG);
  expect(await from(open, '127.0.0.2', '/rpc')).toBe(TOO_MANY);
  expect(await from(open, '127.0.0.2', '/key')).toBe(429);
  expect(await from(open, '127.0.0.3', '/rpc')).toBe(WRONG);
  expect(await from(open, '127.0.0.1', '/rpc')).toBe(WRONG);
});

test('failures at the door count here', async () => {
  for (let tries = 0; tries < 3; tries += 1) expect(await from(open, '127.0.0.4', '/key')).toBe(401);
  expect(await from(open, '127.0.0.4', '/rpc')).toBe(TOO_MANY);
});

test.each(['x-forwarded-for', 'forwarded', 'x-real-ip'])('%s of a stranger is not believed', async (name) => {
  const address = name === 'x-forwarded-for' ? '127.0.0.5' : name === 'forwarded' ? '127.0.0.6' : '127.0.0.7';
  for (let tries = 0; tries < 3; tries += 1)
    expect(await from(open, address, '/rpc', { [name]: `203.0.113.${tries}` })).toBe(WRONG);
  expect(await from(open, address, '/rpc', { [name]: '203.0.113.99' })).toBe(TOO_MANY);
});

test('behind a trusted proxy it is the address that the proxy saw', async () => {
  const via = (forwarded: string) => from(behind, '127.0.0.1', '/rpc', { 'x-forwarded-for': forwarded });
  for (let tries = 0; tries < 3; tries += 1) expect(await via('203.0.113.7')).toBe(WRONG);
  expect(await via('203.0.113.7')).toBe(TOO_MANY);
  // What the client itself wrote stands before what the proxy wrote.
  expect(await via('203.0.113.8, 203.0.113.7')).toBe(TOO_MANY);
  expect(await via('203.0.113.8')).toBe(WRONG);
});

test('whoever is not the proxy is who it is', async () => {
  const spoof = () => from(behind, '127.0.0.2', '/rpc', { 'x-forwarded-for': `198.51.100.${(spoofed += 1) % 250}` });
  for (let tries = 0; tries < 3; tries += 1) expect(await spoof()).toBe(WRONG);
  expect(await spoof()).toBe(TOO_MANY);
});

test('a proxy that is a client itself is counted as one', async () => {
  for (let tries = 0; tries < 3; tries += 1) expect(await from(behind, '127.0.0.1', '/rpc')).toBe(WRONG);
  expect(await from(behind, '127.0.0.1', '/rpc')).toBe(TOO_MANY);
  expect(await from(behind, '127.0.0.1', '/rpc', { 'x-forwarded-for': '192.0.2.1' })).toBe(WRONG);
});
