import { expect, test } from 'vitest';
import { UNHURRIED } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';
import { beginTask, callDeclared, getTask } from './task-client.ts';
import { DONE, startTaskServer } from './task-server.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

const server = ofFile(startTaskServer, (one) => one.close());
const spine = spineOfFile(() => ({ toml: UNHURRIED + toolToml({ name: 'slow', url: server.url }) }));

test('a key repeats the task that it began, while that goes on and afterwards, and nothing is done or charged twice', async () => {
  const keyed = { meta: { 'tollgate/idempotency-key': 'k-1' } };
  const before = await spine.balance();
  const first = await beginTask(spine, 'slow', {}, keyed);
  const again = await callDeclared(spine, 'slow', {}, { ...keyed, id: 'other' });
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(again.message).toMatchObject({ id: 'other', result: first.created });
  // A key that counts as free is forgotten where newer answers need its room, and a repeat would run again.
  const keys = await spine.app.database.query({ name: 'test/keys', text: 'SELECT charged FROM idempotency' });
  expect(keys).toEqual([{ charged: 1n }]);
  expect(server.ids).toHaveLength(1);
  expect((await spine.balance()).locked).toBe(1_000n);
  server.says(server.ids[0]!, DONE);
  expect((await getTask(spine, 'slow', first.id)).message.result).toMatchObject({ status: 'completed' });
  expect((await callDeclared(spine, 'slow', {}, keyed)).message.result).toEqual(first.created);
  expect((await callDeclared(spine, 'slow', { other: 1 }, keyed)).status).toBe(409);
  expect(server.ids).toHaveLength(1);
  expect(await spine.faults()).toEqual([]);
  expect(before.available - (await spine.balance()).available).toBe(1_000n);
});

test('rounds before a task are one call with it: the lock goes from round to round, and the task has the last', async () => {
  const before = await spine.balance();
  server.instead = ({ method, params }) =>
    method === 'tools/call' && params['inputResponses'] === undefined
      ? '{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"who?"}}},"requestState":"s"}'
      : undefined;
  const { message } = await callDeclared(spine, 'slow');
  const { requestState } = message.result;
  const params = { requestState, inputResponses: { who: { action: 'accept', content: {} } } };
  const { id } = await beginTask(spine, 'slow', {}, { params });
  expect(await spine.balance()).toEqual({ available: before.available - 1_000n, locked: 1_000n });
  server.says(server.ids.at(-1)!, DONE);
  await getTask(spine, 'slow', id);
  expect(await spine.faults()).toEqual([]);
  expect(before.available - (await spine.balance()).available).toBe(1_000n);
});
