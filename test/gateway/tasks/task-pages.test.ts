import { describe, expect, it } from 'vitest';
import { ENGINES } from '../../support/engines.ts';
import { alice, bob, keyOf, newTask, tasksWorld, working } from './tasks-world.ts';

const all = { primitive: 'agent', service: null, limit: 10 } as const;

describe.each(ENGINES)('the list of tasks on %s', (engine) => {
  async function world() {
    const { one, clock } = await tasksWorld(engine);
    for (let n = 0; n < 25; n++) {
      // Three at a time are of one moment.
      clock.now += n % 3 === 0 ? 1_000 : 0;
      await one.tasks.begin(
        newTask(`task-${n}`, { service: n % 5 === 0 ? 'acme/other' : 'acme/agent', contextId: `context-${n % 2}` }),
        null,
      );
    }
    await one.tasks.begin(newTask('bobs', bob), null);
    return { tasks: one.tasks, clock };
  }

  it('has each task once over all its pages, those that changed last first', async () => {
    const { tasks, clock } = await world();
    clock.now += 1_000;
    await tasks.saw(keyOf('task-7'), working);
    const seen: { readonly updatedAt: number; readonly taskId: string }[] = [];
    let after: string | null = null;
    let pages = 0;
    do {
      const page = await tasks.list(alice, { ...all, limit: 4, after });
      expect(page.total).toBe(25);
      seen.push(...page.tasks);
      after = page.next;
      pages += 1;
    } while (after !== null);
    expect(pages).toBe(7);
    expect(new Set(seen.map(({ taskId }) => taskId)).size).toBe(25);
    expect(seen[0]!.taskId).toBe('task-7');
    expect(seen.map(({ updatedAt }) => updatedAt)).toEqual(
      seen.map(({ updatedAt }) => updatedAt).toSorted((a, b) => b - a),
    );
  });

  it('has no next page after a last one that is full', async () => {
    const { tasks } = await world();
    const { tasks: page, next } = await tasks.list(alice, { ...all, limit: 25 });
    expect(page).toHaveLength(25);
    expect(next).toBeNull();
  });

  it('is of a service, a context, a state, or what has changed since', async () => {
    const { tasks, clock } = await world();
    clock.now += 1_000;
    await tasks.saw(keyOf('task-7'), working);
    expect((await tasks.list(alice, { ...all, service: 'acme/other' })).total).toBe(5);
    expect((await tasks.list(alice, { ...all, contextId: 'context-1' })).total).toBe(12);
    expect((await tasks.list(alice, { ...all, state: 'working' })).tasks.map(({ taskId }) => taskId)).toEqual([
      'task-7',
    ]);
    expect((await tasks.list(alice, { ...all, since: clock.now })).total).toBe(1);
    expect((await tasks.list(alice, { ...all, since: clock.now - 1_000 })).total).toBe(2);
    expect((await tasks.list(alice, { ...all, primitive: 'video' })).total).toBe(0);
    for (const hostile of ['a\0b', '\ud800', '', 'x'.repeat(300)])
      expect(await tasks.list(alice, { ...all, contextId: hostile })).toEqual({ tasks: [], total: 0, next: null });
  });

  it('refuses a page token that none of its pages ended with, and shows by one no more than its caller has', async () => {
    const { tasks } = await world();
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const garbage = [
      '',
      'x',
      '💥',
      'bnVsbA',
      encode({}),
      encode([1, 'a']),
      encode(['1', 'a', 'b']),
      encode([1.5, 'a', 'b']),
      encode([1, 'a\0', 'b']),
    ];
    for (const after of [...garbage, 'A'.repeat(1_000_000)])
      await expect(tasks.list(alice, { ...all, after })).rejects.toMatchObject({
        code: 'invalid_request',
        param: 'after',
      });
    const { next } = await tasks.list(alice, { ...all, limit: 1 });
    expect((await tasks.list(bob, { ...all, after: next })).tasks.every(({ account }) => account === 'bob')).toBe(true);
  });
});
