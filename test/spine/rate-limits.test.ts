import { afterEach, expect, test } from 'vitest';
import { ask } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// 60 requests a minute and 20 more at once for each key, tokens by what was used; always 429, never 402, always
// with when to come back.

let now = Date.now();
const spine = spineOfFile(() => ({ toml: '[limits]\ntokens_per_minute = 1000\n', now: () => now }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const whoami = (key: string) => spine.get('/key', bearer(key));

test('80 at once, then one a second', async () => {
  const { key } = await spine.tenant('eager', '1');
  for (let i = 0; i < 80; i++) {
    const response = await whoami(key);
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('60');
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe(String(Math.min(60, 79 - i)));
  }
  const refused = await whoami(key);
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  expect(Number(refused.headers.get('x-ratelimit-reset-requests'))).toBe(80);
  expect(await refused.json()).toMatchObject({
    error: {
      type: 'rate_limit_exceeded',
      code: 429,
      message: 'Rate limit of 60 requests per minute of this key exceeded: retry in 1 s',
    },
  });
  now += 1_000;
  expect((await whoami(key)).status).toBe(200);
  expect((await whoami(key)).status).toBe(429);
  now += 80_000;
  expect((await whoami(key)).headers.get('x-ratelimit-remaining-requests')).toBe('60');
});

test('each key has its own', async () => {
  const first = await spine.tenant('twin', '1');
  const second = await spine.tenant('twin', '0');
  for (let i = 0; i < 81; i++) await (await whoami(first.key)).text();
  expect((await whoami(first.key)).status).toBe(429);
  expect((await whoami(second.key)).status).toBe(200);
});

test('a refused call is not locked, not forwarded, and not charged', async () => {
  const { key } = await spine.tenant('refused', '1');
  for (let i = 0; i < 80; i++) await (await whoami(key)).text();
  const locks = (await spine.locks()).length;
  const seen = spine.provider.log.length;
  for (const stream of [false, true]) {
    const response = await spine.post('/chat/completions', ask('hello', { stream }), bearer(key));
    expect(response.status).toBe(429);
    expect(response.headers.get('content-type')).toContain('application/json');
  }
  expect(await spine.locks()).toHaveLength(locks);
  expect(spine.provider.log).toHaveLength(seen);
});

test('requests without a valid key use up nobody’s', async () => {
  const { key } = await spine.tenant('calm', '1');
  for (let i = 0; i < 100; i++) expect((await whoami('svc-sk-v2-nothing')).status).toBe(401);
  expect((await whoami(key)).headers.get('x-ratelimit-remaining-requests')).toBe('60');
});

test('tokens: what calls used is taken from the minute, and who is over waits', async () => {
  const { key } = await spine.tenant('talker', '1');
  const chat = () => spine.post('/chat/completions', ask('hello !tokens:400', { max_tokens: 400 }), bearer(key));
  const first = await chat();
  expect(first.status).toBe(200);
  const used = ((await first.json()) as { usage: { total_tokens: number } }).usage.total_tokens;
  await spine.quiet();
  // Each request counts for one token until it is known what it used.
  const left = Number((await whoami(key)).headers.get('x-ratelimit-remaining-tokens'));
  expect(left).toBeLessThanOrEqual(1_000 - used);
  expect(left).toBeGreaterThanOrEqual(1_000 - used - 2);
  expect((await chat()).status).toBe(200);
  await (await chat()).text();
  await spine.quiet();
  const refused = await chat();
  expect(refused.status).toBe(429);
  const wait = Number(refused.headers.get('retry-after'));
  expect(wait).toBeGreaterThanOrEqual(1);
  expect(await refused.json()).toMatchObject({
    error: { type: 'rate_limit_exceeded', message: expect.stringContaining('tokens') as string },
  });
  now += wait * 1_000;
  expect((await chat()).status).toBe(200);
});
