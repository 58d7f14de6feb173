import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { stallsAt, watchedAt } from '../support/loop-stalls.ts';
import { readOpenApi } from '../support/open-api.ts';
import { someOf } from '../support/some-of.ts';
import { UNHURRIED } from '../support/spine.ts';

/* Strangers without a key choose the address and the headers of a request: 15 KB of any piece hold up nobody. */

const BYTES = 15_000;
const PIECES = [
  ...':/.-_=+,;@~a0'.split(''),
  '%2F',
  '%E2%82%AC',
  '/models/',
  '/tasks/',
  '/v1/',
  '/a2a/',
  '?a=',
  '&a[]=',
  '="',
  ' ,',
  'q=0.1,',
  'a=b; ',
  'Bearer ',
  'tg1.',
];
const ENDS = ['', '/', ':', ':generateContent', '!'];
const HEADERS = [
  'accept',
  'accept-encoding',
  'anthropic-beta',
  'authorization',
  'content-type',
  'cookie',
  'forwarded',
  'idempotency-key',
  'if-none-match',
  'last-event-id',
  'mcp-protocol-version',
  'mcp-session-id',
  'origin',
  'payment-signature',
  'prefer',
  'range',
  'sign-in-with-x',
  'traceparent',
  'tracestate',
  'user-agent',
  'x-api-key',
  'x-forwarded-for',
  'x-request-id',
];

const directory = mkdtempSync(join(tmpdir(), 'tollgate-long-'));
const socketPath = join(directory, 'stalls');
let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ toml: UNHURRIED, env: watchedAt(socketPath) });
});
afterAll(async () => {
  await gateway?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** `path` as it is written: `fetch` would change it. */
function send(method: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  const { hostname, port } = new URL(gateway.baseUrl);
  return new Promise((resolve) => {
    const asked = request({ hostname, port, method, path, headers }, (response) => {
      response.resume().on('close', resolve);
    });
    asked.on('error', () => resolve());
    asked.end(method === 'POST' ? '{}' : undefined);
  });
}

/** A turn of the usual length, and as much again as a quick search of the text takes on a slow machine. */
const limitOf = (turns: readonly number[]): number => 2 * turns.toSorted((a, b) => a - b)[turns.length >> 1]! + 20;

/** The cases that hold the loop up longer than the others do, three times in a row. */
async function slowOf(cases: readonly (readonly [name: string, send: () => Promise<void>])[]): Promise<string[]> {
  const turnOf = async (ask: () => Promise<void>) => {
    await stallsAt(socketPath);
    await ask();
    return (await stallsAt(socketPath)).workMs;
  };
  const first: number[] = [];
  for (const [, ask] of cases) first.push(await turnOf(ask));
  const limit = limitOf(first);
  const slow: string[] = [];
  for (const [at, [name, ask]] of cases.entries()) {
    let least = first[at]!;
    for (let tries = 1; tries < 4 && least > limit; tries++) least = Math.min(least, await turnOf(ask));
    if (least > limit) slow.push(`${name}: ${Math.round(least)} ms, usual ones ${Math.round(limit)} ms at most`);
  }
  return slow;
}

const filled = (piece: string, bytes = BYTES): string => piece.repeat(Math.floor(bytes / piece.length));

test('a long address', { timeout: 240_000 }, async () => {
  const { paths } = await readOpenApi<{ paths: Record<string, object> }>(gateway.baseUrl);
  const begins = new Set(['/', '/mcp/', '/a2a/', '/a2a/x/', '/v1/', '/v1beta/models/', '/videos/', '/guide/']);
  for (const path of Object.keys(paths)) begins.add(path.replace(/[^/]*$/, '').replaceAll(/\{[^}]*\}/g, 'x'));
  expect(begins.size).toBeGreaterThan(20);
  const cases = [...begins].flatMap((begin, at) =>
    someOf(PIECES, 3, at).map(
      (piece) =>
        [
          `${begin} with ${piece}`,
          async () => {
            for (const end of ENDS) {
              const path = (begin + filled(piece) + end).replaceAll(' ', '%20');
              await send('GET', path);
              await send('POST', path, { 'content-type': 'application/json' });
            }
          },
        ] as const,
    ),
  );
  expect(await slowOf(cases)).toEqual([]);
});

test('a long header', { timeout: 120_000 }, async () => {
  const cases = HEADERS.flatMap((name, at) =>
    someOf(PIECES, 3, at).map(
      (piece) =>
        [
          `${name} with ${piece}`,
          async () => {
            const headers = { 'content-type': 'application/json', [name]: `x ${filled(piece)}x` };
            await send('POST', '/api/v1/chat/completions', headers);
            await send('POST', '/mcp', headers);
            await send('GET', '/api/v1/models', headers);
          },
        ] as const,
    ),
  );
  expect(await slowOf(cases)).toEqual([]);
});
