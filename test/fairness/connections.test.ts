import { expect, onTestFinished, test } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { chat, HOLD, honest, MANY_KEYS, startOneOrigin } from './support/one-origin.ts';

const SLOW = { timeout: 180_000 };
const CALLS = 1_300;

async function inFlight({ baseUrl, adminKey }: Gateway): Promise<number> {
  const response = await fetch(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } });
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('tollgate_calls_in_flight'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

test(
  'one account with more open calls than there are connections leaves some to another, and gets all of its own answered',
  SLOW,
  async () => {
    const origin = await startOneOrigin();
    onTestFinished(() => origin.close());
    const gateway = await startGateway({ toml: `${MANY_KEYS}${origin.toml}` });
    onTestFinished(() => gateway.stop());
    const greedy = await gateway.openAccount('greedy', 1);
    const other = await gateway.openAccount('other', 1);
    const call = honest(gateway, other.key);
    await call();
    const before = await bystand({ call });

    const leave = new AbortController();
    onTestFinished(() => leave.abort());
    const answered = async () => {
      const response = await chat(gateway, greedy.key, HOLD, { signal: leave.signal });
      const text = await response.text();
      return response.ok ? 'served' : text;
    };
    const calls = Array.from({ length: CALLS }, answered);
    for (const each of calls) each.catch(() => {});
    // Far more than a few.
    await origin.until(() => origin.held >= 1_024);
    // Those that wait are in as well: what is measured is what they hold, not that they come all at once.
    await expect.poll(() => inFlight(gateway), { timeout: 120_000, interval: 200 }).toBe(CALLS);
    const during = await bystand({ call });
    expect(origin.held).toBe(1_024);
    expectUnharmed(before, during);

    const releasing = setInterval(() => origin.release(), 50);
    onTestFinished(() => clearInterval(releasing));
    expect([...new Set(await Promise.all(calls))]).toEqual(['served']);
  },
);
