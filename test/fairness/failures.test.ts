import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { bystand, expectUnharmed, type Fare } from '../support/bystander.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock } from '../support/spine.ts';

// One account makes providers fail, free of charge: with what crashes them, or with what they never answer. Another
// account does not feel it.

/** By day an error of all three providers, and silence of one; the deep run takes the others as well. */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';

const providers: TestProvider[] = [];
let gateway: Gateway;
let good: string;
let bad: string;

beforeAll(async () => {
  for (let i = 0; i < 4; i++) providers.push(await startProvider());
  const block = (name: string, index: number) =>
    modelBlock({ name, provider: `P${index}`, url: providers[index]!.url });
  gateway = await startGateway({
    env: { TEST_UPSTREAM_KEY: 'upstream' },
    toml: `[upstream]
head_timeout_ms = ${atThisLoad(400)}
${['one', 'slow'].map((name) => block(`test/${name}`, 0)).join('')}
${['three', 'slow-three'].flatMap((name) => [1, 2, 3].map((index) => block(`test/${name}`, index))).join('')}`,
  });
});
beforeEach(async () => {
  // Accounts of their own, as a key has so many calls a minute.
  const name = `${performance.now()}`.replace('.', '-');
  good = (await gateway.openAccount(`good-${name}`, 10)).key;
  bad = (await gateway.openAccount(`bad-${name}`, 10)).key;
});
afterAll(async () => {
  await gateway.stop();
  for (const provider of providers) await provider.stop();
});

const post = async (key: string, model: string, content: string): Promise<number> => {
  const response = await fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(ask(content, { model })),
  });
  await response.arrayBuffer();
  return response.status;
};

/** A row of twelve failing calls, then one after the other until the bystander is through. */
async function whileAttacked(model: string, content: string, calls: number, everyMs: number): Promise<Fare> {
  const over = new AbortController();
  expect(new Set(await Promise.all(Array.from({ length: 12 }, () => post(bad, model, content))))).not.toContain(200);
  const attack = (async () => {
    while (!over.signal.aborted) {
      await post(bad, model, content);
      await pause(1_000, undefined, { signal: over.signal }).catch(() => {});
    }
  })();
  try {
    return await bystand({ call: async () => (await post(good, model, 'hello')) === 200, calls, everyMs });
  } finally {
    over.abort();
    await attack;
  }
}

const CASES: readonly (readonly [what: string, model: string, content: string])[] = [
  ['that all three providers answer with an error', 'test/three', 'poison !status:500'],
  ['that its provider never answers', 'test/slow', 'poison !head-delay:forever'],
  ['that its provider answers with an error', 'test/one', 'poison !status:500'],
  ['that none of three providers ever answers', 'test/slow-three', 'poison !head-delay:forever'],
];

describe.each(DEEP ? CASES : CASES.slice(0, 2))('calls %s', (_what, model, content) => {
  test('take nothing from another account', async () => {
    const before = await bystand({ call: async () => (await post(good, model, 'hello')) === 200, calls: 20 });
    expect(before.served).toBe(20);
    expectUnharmed(before, await whileAttacked(model, content, 20, 60));
    expect(await gateway.admin('GET', '/audit')).toMatchObject({ data: { ok: true } });
  });
});
