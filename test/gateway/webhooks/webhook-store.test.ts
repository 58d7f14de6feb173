import { describe, expect, test } from 'vitest';
import { WEBHOOKS_PER_TASK_MAX } from '../../../src/gateway/webhooks/webhook.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES } from '../../support/engines.ts';
import { ALICE, hook, KEY, openWorld } from './webhook-world.ts';

const URL_A = 'https://hook.example.com/secret-path?key=secret-query';
const SECRET = { authorization: 'Bearer secret-credentials', 'x-token': 'secret-token' };
const DAY_MS = 24 * 3_600_000;

describe.each(ENGINES)('webhooks on %s', (engine) => {
  test('are found by every gateway, as they were set, oldest first', async () => {
    const { gateway, clock } = await openWorld(engine);
    const [one, other] = [gateway(), gateway()];
    const first = hook(URL_A, { headers: SECRET, notes: '{"token":"secret-token"}' });
    const second = hook('https://b.example.com/', { name: '0', form: 'other' });
    expect(await one.set(KEY, ALICE, first)).toBe(true);
    clock.now += 1;
    expect(await one.set(KEY, ALICE, second)).toBe(true);
    expect(await other.list(KEY, ALICE)).toEqual([first, second]);
    expect(await other.list({ ...KEY, taskId: 'task-2' }, ALICE)).toEqual([]);
    expect(await other.list({ ...KEY, service: 'acme/other' }, ALICE)).toEqual([]);
  });

  test('are replaced by name, and deleted once', async () => {
    const { gateway } = await openWorld(engine);
    const webhooks = gateway();
    await webhooks.set(KEY, ALICE, hook(URL_A, { headers: SECRET }));
    await webhooks.set(KEY, ALICE, hook('https://b.example.com/', { form: 'other' }));
    expect(await webhooks.list(KEY, ALICE)).toEqual([hook('https://b.example.com/', { form: 'other' })]);
    expect(await webhooks.delete(KEY, ALICE, 'a')).toBe(true);
    expect(await webhooks.delete(KEY, ALICE, 'a')).toBe(false);
    expect(await webhooks.list(KEY, ALICE)).toEqual([]);
  });

  test('are each owner’s own, also those of a run and those of its account', async () => {
    const { gateway } = await openWorld(engine);
    const webhooks = gateway();
    const owners = [
      ALICE,
      { account: 'bob', within: null },
      { account: 'alice', within: 'gen-1' },
      { account: 'alice', within: 'gen-2' },
    ];
    for (const [index, owner] of owners.entries())
      await webhooks.set(KEY, owner, hook(`https://${index}.example.com/`));
    for (const [index, owner] of owners.entries()) {
      expect((await webhooks.list(KEY, owner)).map(({ url }) => url)).toEqual([`https://${index}.example.com/`]);
    }
    expect(await webhooks.delete(KEY, owners[2]!, 'a')).toBe(true);
    expect(await webhooks.list(KEY, ALICE)).toHaveLength(1);
  });

  test('are so many for a task, and one of them can still be replaced', async () => {
    const { gateway } = await openWorld(engine);
    const webhooks = gateway();
    for (let n = 0; n < WEBHOOKS_PER_TASK_MAX; n += 1)
      expect(await webhooks.set(KEY, ALICE, hook(URL_A, { name: `${n}` }))).toBe(true);
    expect(await webhooks.set(KEY, ALICE, hook(URL_A, { name: 'more' }))).toBe(false);
    expect(await webhooks.set(KEY, ALICE, hook(URL_A, { name: '3', form: 'other' }))).toBe(true);
    expect(await webhooks.list(KEY, ALICE)).toHaveLength(WEBHOOKS_PER_TASK_MAX);
    expect(await webhooks.set({ ...KEY, taskId: 'task-2' }, ALICE, hook(URL_A))).toBe(true);
  });

  test('are forgotten when nothing was sent to them for long', async () => {
    const { gateway, clock } = await openWorld(engine);
    const webhooks = gateway();
    await webhooks.set(KEY, ALICE, hook(URL_A));
    clock.now += 30 * DAY_MS - 1;
    expect(await webhooks.sweep(10)).toBe(0);
    expect(await webhooks.list(KEY, ALICE)).toHaveLength(1);
    clock.now += 1;
    expect(await webhooks.list(KEY, ALICE)).toEqual([]);
    expect(await webhooks.sweep(10)).toBe(1);
  });

  test('show nothing of their secrets in the database, and open for nobody else', async () => {
    const { gateway, database } = await openWorld(engine);
    const webhooks = gateway();
    await webhooks.set(KEY, ALICE, hook(URL_A, { headers: SECRET, notes: '{"token":"secret-token"}' }));
    const rows = await database.query(adHoc('SELECT * FROM webhooks'));
    expect(
      JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
    ).not.toContain('secret');
    await database.query(adHoc("UPDATE webhooks SET account = 'bob'"));
    expect(await webhooks.list(KEY, { account: 'bob', within: null })).toEqual([]);
    await database.query(adHoc("UPDATE webhooks SET account = 'alice'"));
    expect(await gateway({ secret: Buffer.alloc(32, 8) }).list(KEY, ALICE)).toEqual([]);
  });
});
