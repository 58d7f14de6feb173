import { afterEach, expect, test } from 'vitest';
import { createKey } from '#auth';
import { ask } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// The clock of the machine is set back or forward: limits, rests and durations go by the time that passed.

const MINUTE = 60_000;
const DAY = 86_400_000;
const SHIFTS: readonly (readonly [string, number])[] = [
  ['back by 10 minutes', -10 * MINUTE],
  ['forward by 10 minutes', 10 * MINUTE],
  ['back by 3 days', -3 * DAY],
  ['forward by 3 days', 3 * DAY],
];

let passed = 0;
let wall = Date.now();
const pass = (ms: number) => {
  passed += ms;
  wall += ms;
};

const spine = spineOfFile(() => ({
  now: () => wall,
  elapsed: () => passed,
  toml: '[sign_in]\nfailures_per_minute = 3\n[upstream]\ncooldown_ms = 30000\n',
}));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const whoami = async (key: string) => (await spine.get('/key', bearer(key))).status;

test.each(SHIFTS)('%s: a key that is in use has what it had, and gets one more a second', async (_name, shift) => {
  const { key } = await spine.tenant('busy', '0');
  for (let i = 0; i < 80; i++) expect(await whoami(key)).toBe(200);
  expect(await whoami(key)).toBe(429);
  wall += shift;
  expect(await whoami(key)).toBe(429);
  pass(2_000);
  expect([await whoami(key), await whoami(key), await whoami(key)]).toEqual([200, 200, 429]);
});

test.each(SHIFTS)(
  '%s: an address with too many failed keys waits for its minute, no more and no less',
  async (_name, shift) => {
    const guess = async () => (await spine.get('/key', bearer(createKey('live').text))).status;
    pass(2 * MINUTE);
    for (let i = 0; i < 3; i++) expect(await guess()).toBe(401);
    expect(await guess()).toBe(429);
    wall += shift;
    expect(await guess()).toBe(429);
    pass(MINUTE);
    expect(await guess()).toBe(401);
  },
);

test.each(SHIFTS)('%s: a provider that failed rests for its cool-down', async (_name, shift) => {
  const call = async () => {
    const response = await spine.post('/chat/completions', ask('hello'));
    await response.text();
    return response.status;
  };
  pass(10 * MINUTE);
  // After ten failures in a row it is closed for the account that had them.
  for (let failure = 0; failure < 10; failure++) {
    // After its first failure the only provider is asked once more.
    spine.provider.instruct(...Array.from({ length: failure === 0 ? 2 : 1 }, () => ({ status: 500 })));
    expect(await call()).toBe(500);
    pass(1_000);
  }
  expect(await call()).toBe(503);
  wall += shift;
  pass(1_000);
  expect(await call()).toBe(503);
  pass(30_000);
  expect(await call()).toBe(200);
});

test.each(SHIFTS)('%s in the middle of a call: its duration is the time that passed', async (_name, shift) => {
  pass(2 * MINUTE);
  const { promise: stallUntil, resolve: goOn } = Promise.withResolvers<void>();
  spine.provider.instruct({ stallAt: 1_000, stallUntil, tokens: 40 });
  const response = await spine.post('/chat/completions', ask('hello', { stream: true }));
  const chunks = response.body!.values();
  expect((await chunks.next()).done).toBe(false);
  wall += shift;
  pass(2_000);
  goOn();
  for await (const chunk of chunks) expect(chunk.length).toBeGreaterThan(0);
  const { data } = (await (await spine.get(`/generation?id=${response.headers.get('x-generation-id')}`)).json()) as {
    data: object;
  };
  expect(data).toMatchObject({ state: 'settled', latency: 0, generation_time: 2_000 });
});
