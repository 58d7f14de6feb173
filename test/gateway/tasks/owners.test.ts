import { describe, expect, it } from 'vitest';
import { ownerOf } from '../../../src/gateway/tasks/task.ts';
import { ENGINES } from '../../support/engines.ts';
import { alice, bob, keyOf, newTask, tasksWorld } from './tasks-world.ts';

const underRun = { account: 'alice', within: 'run-1' };
const underOther = { account: 'alice', within: 'run-2' };
const all = { primitive: 'agent', service: null, limit: 10 } as const;

describe.each(ENGINES)('tasks on %s', (engine) => {
  async function world() {
    const { one } = await tasksWorld(engine);
    const { tasks } = one;
    await tasks.begin(newTask('own'), null);
    await tasks.begin(newTask('nested', underRun), null);
    await tasks.begin(newTask('bobs', bob), null);
    return tasks;
  }

  it('are seen by their account: what another has is as what is not there', async () => {
    const tasks = await world();
    expect(await tasks.find(keyOf('own'), alice)).toMatchObject({ taskId: 'own' });
    for (const [id, owner] of [
      ['own', bob],
      ['bobs', alice],
      ['nobodys', alice],
    ] as const) {
      expect(await tasks.find(keyOf(id), owner)).toBeNull();
      expect(await tasks.findAll('agent', id, owner)).toEqual([]);
    }
    expect((await tasks.list(bob, all)).tasks.map(({ taskId }) => taskId)).toEqual(['bobs']);
  });

  it('are seen by a run only where they were begun under the same call; the account sees those of its runs', async () => {
    const tasks = await world();
    expect(await tasks.find(keyOf('nested'), underRun)).toMatchObject({ within: 'run-1' });
    expect(await tasks.find(keyOf('nested'), alice)).toMatchObject({ within: 'run-1' });
    for (const owner of [underOther, { account: 'bob', within: 'run-1' }]) {
      expect(await tasks.find(keyOf('nested'), owner)).toBeNull();
      expect(await tasks.findAll('agent', 'nested', owner)).toEqual([]);
      expect((await tasks.list(owner, all)).total).toBe(0);
    }
    expect(await tasks.find(keyOf('own'), underRun)).toBeNull();
    expect((await tasks.list(underRun, all)).tasks.map(({ taskId }) => taskId)).toEqual(['nested']);
    expect((await tasks.list(alice, all)).total).toBe(2);
  });

  it('are seen by a restricted key only where that key began them; the account sees them', async () => {
    const tasks = await world();
    const key = { hash: 'k1', label: 'k', development: false, access: null };
    const ofKey = ownerOf({ account: 'alice', key: { ...key, restricted: true }, wallet: null });
    const other = ownerOf({ account: 'alice', key: { ...key, hash: 'k2', restricted: true }, wallet: null });
    await tasks.begin(newTask('k1s', ofKey), null);
    expect((await tasks.list(ofKey, all)).tasks.map(({ taskId }) => taskId)).toEqual(['k1s']);
    expect(await tasks.find(keyOf('k1s'), other)).toBeNull();
    expect(await tasks.begin(newTask('k1s', other), null)).toBe('taken');
    // Before keys owned their tasks, no key was stored with them: these are the account's.
    expect(await tasks.find(keyOf('own'), ofKey)).toBeNull();
    expect(ownerOf({ account: 'alice', key, wallet: null })).toEqual(alice);
    expect(await tasks.find(keyOf('k1s'), alice)).toMatchObject({ taskId: 'k1s' });
  });

  it('go on only for those who see them', async () => {
    const tasks = await world();
    expect(await tasks.begin(newTask('nested', underRun), null)).toBe('known');
    expect(await tasks.begin(newTask('nested', alice), null)).toBe('known');
    expect(await tasks.begin(newTask('nested', underOther), null)).toBe('taken');
    expect(await tasks.begin(newTask('own', underRun), null)).toBe('taken');
    expect(await tasks.find(keyOf('nested'), underRun)).toMatchObject({ within: 'run-1' });
  });

  it('are found in all services that have one of this id, ten at most', async () => {
    const tasks = await world();
    for (let n = 0; n < 12; n++) await tasks.begin(newTask('same', { service: `acme/agent-${n}` }), null);
    await tasks.begin(newTask('same', { ...bob, service: 'acme/bobs' }), null);
    const found = await tasks.findAll('agent', 'same', alice);
    expect(found).toHaveLength(10);
    expect(found.every(({ account }) => account === 'alice')).toBe(true);
    expect(await tasks.findAll('video', 'same', alice)).toEqual([]);
    expect(await tasks.findAll('agent', 'a\0b', alice)).toEqual([]);
  });
});
