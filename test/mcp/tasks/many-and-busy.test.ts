import { expect, test } from 'vitest';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { beginTask, callDeclared, getTask } from './task-client.ts';
import { DONE, startTaskServer } from './task-server.ts';

const MANY = process.env['TOLLGATE_DEEP'] === '1' ? 1_000 : 64;
const AT_ONCE = 16;

async function inGroups<T>(count: number, run: (index: number) => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  for (let from = 0; from < count; from += AT_ONCE)
    done.push(
      ...(await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, index) => run(from + index)))),
    );
  return done;
}

test(`${MANY} tasks of one account that nobody asks for are each settled once`, async () => {
  const server = await startTaskServer();
  let ahead = 0;
  const spine = await startSpine({
    toml: UNHURRIED + toolToml({ name: 'slow', url: server.url }),
    now: () => Date.now() + ahead,
  });
  const before = await spine.balance();
  await inGroups(MANY, () => beginTask(spine, 'slow'));
  expect((await spine.balance()).locked).toBe(1_000n * BigInt(MANY));
  for (const [index, id] of server.ids.entries())
    server.says(id, index % 2 === 0 ? DONE : { status: 'failed', error: { code: 1, message: 'no' } });
  ahead += 60_000;
  expect(await spine.faults()).toEqual([]);
  expect(await spine.balance()).toEqual({ available: before.available - 500n * BigInt(MANY), locked: 0n });
  await spine.stop();
  await server.close();
});

test('a request for a task counts against the rate as any other, and a server is looked at no more often than it wants', async () => {
  const server = await startTaskServer();
  let ahead = 0;
  const toml = `[limits]\nrequests_per_minute = 1\nburst = 24\n${toolToml({ name: 'slow', url: server.url })}`;
  const spine = await startSpine({ toml, now: () => Date.now() + ahead });
  const { id } = await beginTask(spine, 'slow', { pollIntervalMs: 50_000 });
  const own = server.ids[0]!;
  await beginTask(spine, 'slow');
  const eager = server.ids[1]!;
  const replies = await inGroups(64, () => getTask(spine, 'slow', id));
  const refused = replies.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThanOrEqual(64 - 25);
  expect(refused[0]!.headers.has('retry-after')).toBe(true);
  const asked = server.askedOf(own);
  expect(asked).toBe(64 - refused.length);
  server.says(own, DONE);
  server.says(eager, DONE);
  // Long after the watch looks where a server does not say, and before this one wants to be asked.
  ahead += 40_000;
  await until(() => server.askedOf(eager) > 0);
  expect(server.askedOf(own)).toBe(asked);
  ahead += 20_000;
  expect(await spine.faults()).toEqual([]);
  expect(server.askedOf(own)).toBe(asked + 1);
  await spine.stop();
  await server.close();
});

test('while its server is away a task goes on, and its client is told that the provider fails', async () => {
  const server = await startTaskServer();
  let ahead = 0;
  const toml = `${UNHURRIED}[tasks]\nttl_ms = 600000\n[upstream]\ncooldown_ms = 0\n${toolToml({ name: 'slow', url: server.url })}`;
  const spine = await startSpine({ toml, now: () => Date.now() + ahead });
  const before = await spine.balance();
  const { id } = await beginTask(spine, 'slow');
  await server.close();
  const { status, message } = await getTask(spine, 'slow', id);
  expect(status).toBeGreaterThanOrEqual(502);
  expect(message.error?.code).toBe(-32_017);
  expect((await spine.balance()).locked).toBe(1_000n);
  ahead += 600_000;
  expect(await spine.faults()).toEqual([]);
  expect(await spine.balance()).toEqual(before);
  await spine.stop();
});

test('a key leaves tasks to the other keys of its account', async () => {
  const server = await startTaskServer();
  const spine = await startSpine({
    toml: `${UNHURRIED}[tasks]\nlive_max = 2\n${toolToml({ name: 'slow', url: server.url })}`,
  });
  const greedy = await spine.tenant('greedy', '1', { limit: 100_000n });
  const { text: key } = (await spine.app.keys.create({ account: greedy.account, label: 'full', kind: 'live' }))!;
  for (let count = 0; count < 2; count++) await beginTask({ ...spine, key: greedy.key }, 'slow');
  const refused = await callDeclared({ ...spine, key: greedy.key }, 'slow');
  expect([refused.status, refused.message.error]).toMatchObject([
    429,
    { message: expect.stringContaining('This key has its share of the running tasks') },
  ]);
  await beginTask({ ...spine, key }, 'slow');
  expect((await callDeclared({ ...spine, key }, 'slow')).status).toBe(429);
  await spine.stop();
  await server.close();
});

test('an account has so many tasks at once: a call that could begin another is not made, and others are', async () => {
  const server = await startTaskServer();
  const spine = await startSpine({
    toml: `${UNHURRIED}[tasks]\nlive_max = 2\n${toolToml({ name: 'slow', url: server.url })}`,
  });
  const other = await spine.tenant('other', '1');
  const first = await beginTask(spine, 'slow');
  await beginTask(spine, 'slow');
  const refused = await callDeclared(spine, 'slow');
  expect([refused.status, refused.message.error]).toMatchObject([
    429,
    { message: expect.stringContaining('This account has 2 running tasks') },
  ]);
  expect(server.ids.length).toBe(2);
  expect((await spine.balance()).locked).toBe(2_000n);
  await beginTask({ ...spine, key: other.key }, 'slow');
  server.says(server.ids[0]!, DONE);
  expect((await getTask(spine, 'slow', first.id)).message.result['status']).toBe('completed');
  await beginTask(spine, 'slow');
  expect((await callDeclared(spine, 'slow')).status).toBe(429);
  await spine.stop();
  await server.close();
});
