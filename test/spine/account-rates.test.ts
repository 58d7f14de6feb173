import { expect, test } from 'vitest';
import { ask as askChat } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// An account has a rate over all its keys, although nobody has set one for it. Each key has a rate of its own, so
// otherwise an account could multiply its rate by making keys.

const PER_MINUTE = 4;
const OF_ACCOUNT = 5;
const BURST = 1;

const spine = spineOfFile(() => ({
  // It stands still: a rate gives nothing back while a slow machine asks.
  elapsed: () => 0,
  toml: `[limits]\nrequests_per_minute = ${PER_MINUTE}\nburst = ${BURST}\naccount_requests_per_minute = ${OF_ACCOUNT}\n`,
}));

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const keysOf = async (account: string, count: number) =>
  Promise.all(
    Array.from(
      { length: count },
      async () => (await spine.app.keys.create({ account, label: 'more', kind: 'live' }))!.text,
    ),
  );
const ask = async (key: string) => {
  const response = await spine.get('/session/balance', bearer(key));
  const { error } = (await response.json()) as { error?: { message: string } };
  return { status: response.status, headers: response.headers, message: error?.message };
};
/** How many requests pass, made with the keys in turn. */
const passing = async (keys: readonly string[], tries: number, send: Send = ask) => {
  let passed = 0;
  for (let i = 0; i < tries; i++) if ((await send(keys[i % keys.length]!)).status !== 429) passed++;
  return passed;
};
type Send = (key: string) => Promise<{ readonly status: number; readonly message: string | undefined }>;
const answered = async (response: Response) => {
  const { error } = (await response.json()) as { error?: { message: string } };
  return { status: response.status, message: error?.message };
};

test('the keys of an account share a rate that nobody set', async () => {
  const { key, account } = await spine.tenant('many', '1');
  const keys = [key, ...(await keysOf(account, 5))];
  const passed = await passing(keys, 3 * (OF_ACCOUNT + BURST));
  expect(passed).toBe(OF_ACCOUNT + BURST);
  const [fresh] = await keysOf(account, 1);
  const { status, headers, message } = await ask(fresh!);
  expect(status).toBe(429);
  expect(message).toMatch(/^Rate limit of 5 requests per minute of the account exceeded: retry in \d+ s$/);
  expect(headers.get('x-ratelimit-limit-requests')).toBe(String(OF_ACCOUNT));
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
});

test('a single key keeps its own rate', async () => {
  const { key } = await spine.tenant('single', '1');
  await passing([key], PER_MINUTE + BURST);
  const { status, message } = await ask(key);
  expect(status).toBe(429);
  expect(message).toMatch(/^Rate limit of 4 requests per minute of this key exceeded/);
});

// Neither costs anything. Each has counters of its own, so a client that counts or waits can still call.
const FREE_REQUESTS: Record<string, Send> = {
  'polls of responses': async (key) => answered(await spine.get('/responses/resp_1', bearer(key))),
  'counts of tokens, in the API of Anthropic': async (key) =>
    answered(await spine.post('/messages/count_tokens', { ...askChat('hello'), max_tokens: 1 }, bearer(key))),
  'counts of tokens, in the API of responses': async (key) =>
    answered(
      await spine.post('/responses/input_tokens', { model: askChat('hello').model, input: 'hello' }, bearer(key)),
    ),
};

test.each(Object.entries(FREE_REQUESTS))('all keys of an account share its rate: %s', async (_, send) => {
  const { key, account } = await spine.tenant(`free ${_}`.replaceAll(/[^a-z]+/gi, '-').toLowerCase(), '1');
  const keys = [key, ...(await keysOf(account, 5))];
  const passed = await passing(keys, 3 * (OF_ACCOUNT + BURST), send);
  expect(passed).toBe(OF_ACCOUNT + BURST);
  const [fresh] = await keysOf(account, 1);
  expect((await send(fresh!)).message).toMatch(/^Rate limit of 5 requests per minute of the account exceeded/);
  expect((await ask(key)).status).toBe(200);
});

test.each(Object.entries(FREE_REQUESTS))('a key with a lower rate keeps to it: %s', async (_, send) => {
  const { account } = await spine.tenant(`slow ${_}`.replaceAll(/[^a-z]+/gi, '-').toLowerCase(), '1');
  const rates = { requestsPerMinute: 2, tokensPerMinute: null };
  const slow = (await spine.app.keys.create({ account, label: 'slow', kind: 'live', ...rates }))!.text;
  const passed = await passing([slow], 6, send);
  expect(passed).toBe(2);
  expect((await send(slow)).message).toContain(
    `Rate limit of 2 requests per minute of this key for ${_.split(' ', 1)[0]} exceeded`,
  );
});

test('a rate that the operator sets replaces it, and one that the owner sets only lowers it', async () => {
  const { key, account } = await spine.tenant('raised', '1');
  const keys = [key, ...(await keysOf(account, 9))];
  const set = (path: string, headers: Record<string, string>, requests_per_minute: number) =>
    fetch(`${spine.origin}${path}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ requests_per_minute }),
    });
  const path = `/admin/v1/accounts/${account}/limits`;
  expect((await set(path, bearer(spine.adminKey), 30)).status).toBe(200);
  expect(await passing(keys, 24)).toBe(24);

  const { key: other, account: own } = await spine.tenant('owner', '1');
  const others = [other, ...(await keysOf(own, 9))];
  expect((await set('/api/v1/limits', bearer(other), 30)).status).toBe(200);
  expect(await passing(others, 24)).toBe(OF_ACCOUNT + BURST - 1);
});

test('a rate that the operator sets for an account holds for a single key, and a key may lower it', async () => {
  const { key, account, hash } = await spine.tenant('one-key', '1');
  const set = async (path: string, requests_per_minute: number) => {
    const reply = await fetch(`${spine.origin}/admin/v1/accounts/${account}/${path}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', ...bearer(spine.adminKey) },
      body: JSON.stringify({ requests_per_minute }),
    });
    return { status: reply.status, text: await reply.text() };
  };
  // By itself it would have no effect.
  const refused = await set(`keys/${hash}`, 30);
  expect(refused.status).toBe(422);
  expect(refused.text).toContain(`/admin/v1/accounts/${account}/limits`);
  expect((await set('limits', 30)).status).toBe(200);
  expect(await passing([key], 24)).toBe(24);
  expect((await set(`keys/${hash}`, 30)).status).toBe(200);
  expect((await set(`keys/${hash}`, 2)).status).toBe(200);
  expect(await passing([key], 6)).toBe(0);
});

test('keys can be created at half the rate of the requests of a key', async () => {
  const { key, account } = await spine.tenant('maker', '1');
  const makers = [key, ...(await keysOf(account, 3))];
  const statuses: number[] = [];
  let message = '';
  for (const maker of makers) {
    const response = await spine.post('/keys', { label: 'one more' }, bearer(maker));
    statuses.push(response.status);
    const { error } = (await response.json()) as { error?: { message: string } };
    message = error?.message ?? '';
  }
  expect(statuses).toEqual([201, 201, 201, 429]);
  expect(message).toMatch(/^Rate limit of 2 requests per minute for new keys of the account exceeded/);
});
