import { expect } from 'vitest';
import { expectError, type Checks } from '../bench.ts';
import { readTask, type Json, type Task } from '../shapes.ts';
import type { ProviderStream } from '../client-calls.ts';

/** List Tasks (§3.1.4, §6.5, §11.5). */
export const listChecks: Checks = {
  'LIST-01': async ({ talk }) => {
    const { contextId, ids } = await threeTasks(talk);
    const { tasks } = await page(talk, { contextId });
    const times = tasks.map(({ status }) => Date.parse(String(status['timestamp'])));
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect(new Set(tasks.map(({ id }) => id))).toEqual(new Set(ids));
  },
  'LIST-02': async ({ talk }) => {
    const { contextId } = await threeTasks(talk);
    expect((await page(talk, { contextId })).body['nextPageToken']).toBe('');
    expect((await page(talk, { contextId, pageSize: 2 })).body['nextPageToken']).toMatch(/./u);
  },
  'LIST-03': async ({ talk }) => {
    const mine = await threeTasks(talk);
    await threeTasks(talk);
    const { tasks } = await page(talk, { contextId: mine.contextId });
    expect(tasks.map(({ id }) => id).toSorted()).toEqual(mine.ids.toSorted());
  },
  'LIST-04': async ({ talk }) => {
    const first = await talk.task('task x');
    const { contextId } = first;
    const failed = await talk.task('fail', { message: { contextId } });
    const { tasks } = await page(talk, { contextId, status: 'TASK_STATE_FAILED' });
    expect(tasks.map(({ id }) => id)).toEqual([failed.id]);
  },
  'LIST-05': async ({ talk }) => {
    const { contextId, ids } = await threeTasks(talk);
    const seen: string[] = [];
    let token = '';
    for (let pages = 0; pages < 4; pages += 1) {
      const { tasks, body } = await page(talk, {
        contextId,
        pageSize: 1,
        ...(token === '' ? {} : { pageToken: token }),
      });
      expect(tasks.length).toBeLessThanOrEqual(1);
      seen.push(...tasks.map(({ id }) => id));
      token = String(body['nextPageToken']);
      if (token === '') break;
    }
    expect(token).toBe('');
    expect(seen.toSorted()).toEqual(ids.toSorted());
  },
  'LIST-06': async ({ talk }) => {
    const { contextId } = await threeTasks(talk);
    for (const { raw } of (await page(talk, { contextId })).tasks) expect(raw).not.toHaveProperty('artifacts');
  },
  'LIST-07': async ({ talk }) => {
    const { contextId } = await threeTasks(talk);
    for (const { artifacts } of (await page(talk, { contextId, includeArtifacts: true })).tasks)
      expect(artifacts).toHaveLength(1);
  },
  'LIST-08': async (bench) => {
    for (const pageSize of [101, -1]) {
      expectError(await bench.talk.call('ListTasks', { pageSize }), 'invalidParams', bench);
    }
  },
  'LIST-09': async ({ talk }) => {
    const { contextId } = await threeTasks(talk);
    for (const { history } of (await page(talk, { contextId, historyLength: 0 })).tasks) expect(history).toEqual([]);
  },
  'LIST-10': async ({ talk }) => {
    const { contextId } = await threeTasks(talk);
    const { body } = await page(talk, { contextId, pageSize: 2 });
    expect(body).toMatchObject({ pageSize: 2, totalSize: 3 });
  },
  'LIST-11': async ({ talk }) => {
    const { contextId } = await threeTasks(talk);
    const future = new Date(Date.now() + 60_000).toISOString();
    expect((await page(talk, { contextId, statusTimestampAfter: future })).tasks).toEqual([]);
    const past = new Date(Date.now() - 60_000).toISOString();
    expect((await page(talk, { contextId, statusTimestampAfter: past })).tasks).toHaveLength(3);
  },
  'LIST-12': async (bench) => {
    expectError(await bench.talk.call('ListTasks', { status: 'TASK_STATE_RUNNING' }), 'invalidParams', bench);
  },
  'LIST-13': async ({ talk }) => {
    const { tasks, body } = await page(talk, { contextId: `of-nobody-${crypto.randomUUID()}` });
    expect(tasks).toEqual([]);
    expect(body).toMatchObject({ tasks: [], nextPageToken: '', totalSize: 0 });
  },
};

async function threeTasks(talk: ProviderStream): Promise<{ contextId: string; ids: string[] }> {
  const first = await talk.task('task one');
  const { contextId } = first;
  const second = await talk.task('task two', { message: { contextId } });
  const third = await talk.task('task three', { message: { contextId } });
  return { contextId, ids: [first.id, second.id, third.id] };
}

async function page(talk: ProviderStream, params: Json): Promise<{ tasks: Task[]; body: Json }> {
  const body = (await talk.call('ListTasks', params)).result();
  return { body, tasks: (body['tasks'] as unknown[]).map((one) => readTask(one, talk.version)) };
}
