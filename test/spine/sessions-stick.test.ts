import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// Calls of one session go to the provider that served the last one, where the prompt's beginning may be cached.

const NAMES = ['A', 'B', 'C', 'D'] as const;
const providers: TestProvider[] = [];
let spine: Spine;
beforeAll(async () => {
  for (const _ of NAMES) providers.push(await startProvider());
  spine = await startSpine({
    toml:
      UNHURRIED +
      NAMES.map((provider, index) => modelBlock({ name: 'test/even', provider, url: providers[index]!.url })).join(''),
  });
});
afterAll(async () => {
  await spine.stop();
  for (const provider of providers) await provider.stop();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const serve = async (more: object, headers: Record<string, string> = {}) => {
  const response = await spine.post('/chat/completions', ask('hello', { model: 'test/even', ...more }), headers);
  await response.text();
  return response.headers.get('x-provider')!;
};

test('session_id in the body', async () => {
  const first = await serve({ session_id: 'one' });
  for (let i = 0; i < 12; i++) expect(await serve({ session_id: 'one' })).toBe(first);
});

test('x-session-id in the header, the same session as in the body', async () => {
  const first = await serve({}, { 'x-session-id': 'two' });
  for (let i = 0; i < 6; i++) {
    expect(await serve({}, { 'x-session-id': 'two' })).toBe(first);
    expect(await serve({ session_id: 'two' })).toBe(first);
  }
});

test('a session follows the provider that took over', async () => {
  const first = await serve({ session_id: 'three' });
  const other = NAMES.find((name) => name !== first)!;
  await serve({ session_id: 'three', provider: { only: [other] } });
  for (let i = 0; i < 8; i++) expect(await serve({ session_id: 'three' })).toBe(other);
});

test('different sessions, and calls without one, are spread', async () => {
  const names = new Set<string>();
  for (let i = 0; i < 40; i++) names.add(await serve({ session_id: `spread-${i}` }));
  expect(names.size).toBeGreaterThan(1);
});

test("another account's session of the same name is another session", async () => {
  // Each of many accounts would follow the first if names were shared.
  const first = await serve({ session_id: 'shared' });
  const names = new Set<string>();
  for (let i = 0; i < 12; i++) {
    const { key } = await spine.tenant(`sharer-${i}`, '1');
    names.add(await serve({ session_id: 'shared' }, { authorization: `Bearer ${key}` }));
  }
  names.delete(first);
  expect(names.size).toBeGreaterThan(0);
});

test.each([
  [{ session_id: 'x'.repeat(257) }, {}, 'session_id'],
  [{ session_id: 7 }, {}, 'session_id'],
  [{}, { 'x-session-id': 'x'.repeat(257) }, 'x-session-id'],
])('a session id that is too long or no text is refused', async (more, headers, param) => {
  const response = await spine.post('/chat/completions', ask('hello', more), headers);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param } });
});
