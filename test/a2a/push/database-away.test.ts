import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { TaskKey } from '#tasks';
import type { WebhookEvent } from '#webhooks';
import { createPushRelay } from '../../../src/a2a/protocol/notifications.ts';

const KEY: TaskKey = { primitive: 'agent', service: 'acme/agent', taskId: 'task-1' };
const task = (state: string) => ({ kind: 'task', id: 'task-1', contextId: 'c', status: { state } });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Stands where the database is: refuses as long as it is told to. */
function store(refusals: number) {
  const told: string[] = [];
  const errors: unknown[] = [];
  const refuse = () => {
    if (refusals-- > 0) throw new Error('the database is away');
  };
  const webhooks = {
    async has() {
      refuse();
      return true;
    },
    async deliver(_key: TaskKey, { contentOf }: WebhookEvent) {
      refuse();
      told.push((JSON.parse(contentOf('0.3')!.body) as ReturnType<typeof task>).status.state);
      return 1;
    },
  };
  return {
    told,
    errors,
    notify: createPushRelay({ webhooks, generationOf: async () => null, onError: (error) => errors.push(error) }),
  };
}

test('what is seen while the database is away is told when it is back, in order, and each once', async () => {
  const { told, errors, notify } = store(3);
  for (const state of ['submitted', 'working']) notify(KEY, { version: '0.3' }, task(state));
  await vi.advanceTimersByTimeAsync(2_000);
  notify(KEY, { version: '0.3' }, task('completed'));
  await vi.advanceTimersByTimeAsync(30_000);
  expect(told).toEqual(['submitted', 'working', 'completed']);
  expect(errors).toHaveLength(3);
});

test('a database that does not come back is given up, and what is seen later is told again', async () => {
  const { told, errors, notify } = store(4);
  notify(KEY, { version: '0.3' }, task('working'));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(errors).toHaveLength(4);
  notify(KEY, { version: '0.3' }, task('completed'));
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual(['completed']);
});
