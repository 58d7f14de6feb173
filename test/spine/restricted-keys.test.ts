import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NewKeyFields } from '#auth/keys';
import { fill, routesOf } from '../support/route-table.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above is for
// calls: what else belongs to its account it neither sees nor changes.

const RESTRICTED: readonly (readonly [string, Partial<NewKeyFields>])[] = [
  ['a spending limit', { limit: 1_000_000n, limitReset: 'daily' }],
  ['an expiry', { expiresAt: Date.now() + 86_400_000 }],
  ['a rate', { requestsPerMinute: 1_000 }],
  ['a list of services', { allowedServices: [MODEL] }],
  ['a price to ask above', { askAbove: 1_000_000n }],
];
/**
 * What is about the account and not about one key. Those that change it ask for full rights before they look at
 * what is sent.
 */
const OF_THE_ACCOUNT = [
  'GET /provider/earnings',
  'GET /withdrawals',
  'GET /withdrawals/x',
  'GET /wallets',
  'GET /limits',
  'GET /members',
  'GET /organisations',
  'POST /organisations',
  'DELETE /members/x',
  'GET /limits/notices',
  'GET /limits/webhook',
  'POST /keys',
  'PATCH /keys/x',
  'DELETE /keys/x',
];

let spine: Spine;
let other: { readonly key: string; readonly hash: string };
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
  other = await spine.tenant('owner', '1', { label: 'canary of the other key' });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const request = async (route: string, key: string) => {
  const [method, path] = route.split(' ') as [string, string];
  const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{"label":"new"}' };
  const headers = { ...bearer(key), ...(body.body ? { 'content-type': 'application/json' } : {}) };
  const response = await fetch(`${spine.url}${path}`, { method, headers, ...body });
  return { status: response.status, text: await response.text() };
};

describe.each(RESTRICTED)('a key with %s', (_name, fields) => {
  let key: string;
  let hash: string;
  beforeAll(async () => {
    ({ key, hash } = await spine.tenant('owner', '0', { ...fields, label: 'own' }));
  });

  test('lists itself alone, on the first page', async () => {
    const page = async (query: string) => {
      const { data } = JSON.parse((await request(`GET /keys${query}`, key)).text) as { data: { hash: string }[] };
      return data.map((one) => one.hash);
    };
    expect(await page('')).toEqual([hash]);
    expect([await page('?limit=1'), await page('?limit=1&offset=1')]).toEqual([[hash], []]);
  });

  test('sees the calls that were made with it, and none of other keys of its account', async () => {
    const ask = async (by: string) =>
      (
        await spine.post('/chat/completions', { model: MODEL, messages: [{ role: 'user', content: 'hi' }] }, bearer(by))
      ).headers.get('x-generation-id')!;
    const [own, others] = [await ask(key), await ask(other.key)];
    const seen = async (id: string, by: string) => (await request(`GET /generation?id=${id}`, by)).status;
    expect([await seen(own, key), await seen(others, key)]).toEqual([200, 404]);
    expect([await seen(own, other.key), await seen(others, other.key)]).toEqual([200, 200]);
  });

  test.each(OF_THE_ACCOUNT)('is refused at %s, in words that say what to do', async (route) => {
    const { status, text } = await request(route, key);
    expect(status).toBe(403);
    expect(text).toContain(
      'A key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above cannot',
    );
    expect(text).toContain('use one without');
  });

  test('finds nothing of another key of its account at any address', async () => {
    const paths = routesOf(spine.app.server).filter(
      ({ method, path }) => method === 'GET' && !path.endsWith('/tunnel'),
    );
    expect(paths.length).toBeGreaterThan(20);
    for (const { path } of paths) {
      const controller = new AbortController();
      const response = await fetch(spine.origin + fill(path, { hash: other.hash }), {
        headers: bearer(key),
        signal: controller.signal,
      });
      // A stream that waits for something to tell has nothing to hide.
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
        controller.abort();
        continue;
      }
      const text = await response.text();
      expect(text, path).not.toContain(other.hash);
      expect(text, path).not.toContain('canary of the other key');
    }
  });
});

test('a key without limits sees its account as before', async () => {
  const { data } = JSON.parse((await request('GET /keys', other.key)).text) as { data: object[] };
  expect(data).toHaveLength(1 + RESTRICTED.length);
  expect((await request('GET /provider/earnings', other.key)).status).toBe(200);
});
