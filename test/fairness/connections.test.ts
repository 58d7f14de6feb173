import { expect, onTestFinished, test } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { startGateway } from '../support/gateway.ts';
import { chat, HOLD, honest, MANY_KEYS, startOneOrigin } from './support/one-origin.ts';

const SLOW = { timeout: 180_000 };

test('one account with more open calls than there are connections leaves some to another, and gets all of its own answered', SLOW, async () => {
  const origin = await startOneOrigin();
  onTestFinished(() => origin.close());
  const gateway = await startGateway({ toml: `${MANY_KEYS}${origin.toml}` });
  onTestFinished(() => gateway.stop());
  const greedy = await gateway.openAccount('greedy', 1);
  const other = await gateway.openAccount('other', 1);
  const call = honest(gateway, other.key);
  await call();
  const before = await bystand({ call, calls: 30 });

  const leave = new AbortController();
  onTestFinished(() => leave.abort());
  const calls = Array.from({ length: 2_500 }, () =>
    chat(gateway, greedy.key, HOLD, { signal: leave.signal }).then(async (response) => (await response.text(), response.status)),
  );
  for (const each of calls) each.catch(() => {});
  // Far more than a few.
  await origin.until(() => origin.held >= 1_024);
  const during = await bystand({ call, calls: 30 });
  expect(origin.held).toBe(1_024);
  expectUnharmed(before, during);

  const releasing = setInterval(() => origin.release(), 50);
  onTestFinished(() => clearInterval(releasing));
  const statuses = Map.groupBy(await Promise.all(calls), (status) => status);
  expect([...statuses.keys()]).toEqual([200]);
});
