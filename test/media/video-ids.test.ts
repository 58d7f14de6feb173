import { expect, test } from 'vitest';
import { fromVideoId, toVideoId } from '../../src/media/video/video-task.ts';

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('the id of a video names its provider, its service and its task', () => {
  const task = { provider: 'a', service: 'maker/film', taskId: '1:2' };
  const key = { primitive: 'video', service: task.service, taskId: task.taskId };
  expect(fromVideoId(toVideoId(task))).toEqual({ provider: 'a', key });
});

test.each([
  ['nothing', ''],
  ['one part', encoded(['b', 'c'])],
  ['three parts', `a:${encoded(['b', 'c'])}:d`],
  ['no JSON', 'a:b'],
  ['no list', `a:${encoded({ 0: 'b', 1: 'c', length: 2 })}`],
  ['nothing in JSON', `a:${encoded(null)}`],
  ['a text, which has letters as a list has items', `a:${encoded('bc')}`],
  ['a service that is no text', `a:${encoded([1, 'c'])}`],
  ['a task that is no text', `a:${encoded(['b', 1])}`],
  ['a task that is missing', `a:${encoded(['b'])}`],
])('an id of %s is the id of no video', (_what, id) => {
  expect(fromVideoId(id)).toBe(null);
});

test('an id has up to 2,048 characters', () => {
  const idOf = (length: number) => `:${encoded(['b', 'c'])}`.padStart(length, 'a');
  expect(fromVideoId(idOf(2_048))).toMatchObject({ key: { taskId: 'c' } });
  expect(fromVideoId(idOf(2_049))).toBe(null);
});
