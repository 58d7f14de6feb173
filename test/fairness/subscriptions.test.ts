import { expect, onTestFinished, test } from 'vitest';
import { bystand, expectUnharmed } from '../support/bystander.ts';
import { startGateway } from '../support/gateway.ts';
import { askAgent, beginTask, honest, MANY_KEYS, startOneOrigin } from './support/one-origin.ts';

const SLOW = { timeout: 120_000 };
/** Many more than the streams of one account. */
const TRIED = process.env['TOLLGATE_DEEP'] === '1' ? 1_300 : 400;

test(
  'one account that listens on all the streams it gets takes nothing from another at the same provider',
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
    const tasks = [
      await beginTask(gateway, greedy.key),
      await beginTask(gateway, greedy.key),
      await beginTask(gateway, greedy.key),
    ];
    // Held: what nobody has any more is closed with the next collection of garbage.
    const streams: Response[] = [];
    const refused: string[] = [];
    for (let n = 0; n < TRIED; n += 50)
      await Promise.all(
        Array.from({ length: 50 }, async (_, index) => {
          const response = await askAgent(
            gateway,
            greedy.key,
            'SubscribeToTask',
            { id: tasks[index % tasks.length] },
            leave.signal,
          );
          if (response.headers.get('content-type')?.startsWith('text/event-stream')) streams.push(response);
          else refused.push(`${response.status} ${await response.text()}`);
        }),
      );
    const during = await bystand({ call });
    expect(streams.length).toBeGreaterThanOrEqual(32);
    expect(refused.length).toBeGreaterThan(TRIED / 2);
    for (const each of refused) expect(each).toMatch(/^429 .*listens on \d+ streams/);
    expect(origin.subscriptions).toBe(tasks.length);
    expectUnharmed(before, during);
  },
);
