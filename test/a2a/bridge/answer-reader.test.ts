import { expect, test } from 'vitest';
import { createAnswerReader } from '../../../src/a2a/bridge/answer-reader.ts';

const saying = (state: string, messageId: string | undefined, text: string) => ({
  statusUpdate: { taskId: 't', status: { state, message: { messageId, role: 'ROLE_AGENT', parts: [{ text }] } } },
});
const WORKING = 'TASK_STATE_WORKING';

test('a message that a later status repeats comes once, and others without an id each time', () => {
  const reader = createAnswerReader(null);
  expect(reader.read(saying(WORKING, 'm-1', 'looking'))).toEqual([{ type: 'progress', text: 'looking' }]);
  expect(reader.read(saying(WORKING, 'm-1', 'looking'))).toEqual([]);
  expect(reader.read(saying(WORKING, 'm-2', 'looking'))).toEqual([{ type: 'progress', text: 'looking' }]);
  for (let time = 0; time < 2; time += 1)
    expect(reader.read(saying(WORKING, undefined, 'reading'))).toEqual([{ type: 'progress', text: 'reading' }]);
});

test('the last message is the answer, also where its artifact said the same: once', () => {
  const artifactUpdate = { taskId: 't', artifact: { artifactId: 'a', parts: [{ text: 'done' }] } };
  const reader = createAnswerReader(null);
  const said = reader.read({ artifactUpdate });
  expect(JSON.stringify(said)).toContain('done');
  expect(reader.read(saying('TASK_STATE_COMPLETED', 'm-1', 'done'))).toEqual([]);
});
