import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readEvent, TASK_STATES } from '../../../src/a2a/wire/events.ts';
import { translateEvent } from '../../../src/a2a/wire/translate.ts';
import { versions } from './support/arbitraries.ts';

const usage = { metadata: { 'tollgate/usage': { tokens: 1 } } };
const status = (state: string, more: object = {}) => ({
  statusUpdate: { taskId: 't', contextId: 'c', status: { state, ...more } },
});

describe('reading an event', () => {
  it.each([
    [
      '1.0',
      { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } },
      ['task', 't', 'c', 'working'],
    ],
    ['1.0', { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }, ['task', 't', 'c', 'completed']],
    [
      '1.0',
      { message: { messageId: 'm', contextId: 'c', role: 'ROLE_AGENT', parts: [] } },
      ['message', null, 'c', null],
    ],
    ['1.0', status('TASK_STATE_INPUT_REQUIRED'), ['status', 't', 'c', 'input-required']],
    ['1.0', status('TASK_STATE_AUTH_REQUIRED'), ['status', 't', 'c', 'auth-required']],
    ['1.0', status('TASK_STATE_WORKING'), ['status', 't', 'c', 'working']],
    ['1.0', { artifactUpdate: { taskId: 't', contextId: '', artifact: {} } }, ['artifact', 't', null, null]],
    ['0.3', { kind: 'task', id: 't', contextId: 'c', status: { state: 'failed' } }, ['task', 't', 'c', 'failed']],
    ['0.3', { kind: 'message', messageId: 'm', taskId: 't', parts: [] }, ['message', 't', null, null]],
    [
      '0.3',
      { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working' }, final: true },
      ['status', 't', 'c', 'working'],
    ],
    [
      '0.3',
      { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'input-required' }, final: false },
      ['status', 't', 'c', 'input-required'],
    ],
    [
      '0.3',
      { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'canceled' }, final: false },
      ['status', 't', 'c', 'canceled'],
    ],
    ['0.3', { kind: 'artifact-update', taskId: 't', contextId: 'c', artifact: {} }, ['artifact', 't', 'c', null]],
    ['0.3', { id: 't', status: { state: 'working' } }, ['task', 't', null, 'working']],
    ['0.3', { id: 't', status: {} }, ['task', 't', null, 'unknown']],
  ] as const)('%s %j', (version, value, [kind, taskId, contextId, state]) => {
    expect(readEvent(version, value)).toEqual({
      kind,
      taskId,
      contextId,
      state,
      output: kind === 'message',
      usage: undefined,
    });
  });

  const parts = [{ text: 'said' }];
  const artifact = (given: unknown) => ({ artifactUpdate: { taskId: 't', artifact: given } });
  const words = { message: { messageId: 'm', role: 'ROLE_AGENT', parts } };
  it.each([
    ['an artifact with parts', '1.0', artifact({ parts }), true],
    [
      'an artifact of 0.3',
      '0.3',
      { kind: 'artifact-update', taskId: 't', artifact: { parts: [{ kind: 'text', text: 'said' }] } },
      true,
    ],
    ['an artifact that is a file', '1.0', artifact({ parts: [{ url: 'https://a.example/b' }] }), true],
    ['an artifact without parts', '1.0', artifact({ parts: [] }), false],
    ['an artifact of an empty text', '1.0', artifact({ parts: [{ text: '' }] }), false],
    [
      'an artifact that is none',
      '1.0',
      { artifactUpdate: { taskId: 't', artifact: { parts: ['x', null, 7] } } },
      false,
    ],
    ['a task with an artifact', '1.0', { task: { id: 't', status: {}, artifacts: [{}, { parts }] } }, true],
    [
      'a task without one',
      '1.0',
      { task: { id: 't', status: { state: 'TASK_STATE_WORKING', ...words }, artifacts: [], history: [words.message] } },
      false,
    ],
    ['a question', '1.0', status('TASK_STATE_INPUT_REQUIRED', words), true],
    ['a question without words', '1.0', status('TASK_STATE_INPUT_REQUIRED'), false],
    ['what a working task says of itself', '1.0', status('TASK_STATE_WORKING', words), false],
    ['a request for credentials', '1.0', status('TASK_STATE_AUTH_REQUIRED', words), false],
  ] as const)('%s: whether it is output', (_name, version, value, output) => {
    expect(readEvent(version, value)!.output).toBe(output);
  });

  it.each([null, undefined, 1, 'task', [], {}, { kind: 'song' }, { task: null }, { id: 1, status: {} }])(
    '%j is none',
    (value) => {
      expect([readEvent('0.3', value), readEvent('1.0', value)]).toEqual([null, null]);
    },
  );

  it('usage is taken from the event, then from the message in its status, then from the task', () => {
    const other = { metadata: { 'tollgate/usage': { tokens: 2 } } };
    const task = (message: object, metadata: object) => ({
      task: { id: 't', status: { state: 'TASK_STATE_COMPLETED', message }, ...metadata },
    });
    const found = [
      readEvent('1.0', { statusUpdate: { taskId: 't', status: { state: 3, message: other }, ...usage } }),
      readEvent('1.0', { statusUpdate: { taskId: 't', status: { state: 3, message: usage } } }),
      readEvent('1.0', task(usage, other)),
      readEvent('1.0', task({}, usage)),
      readEvent('1.0', { message: { messageId: 'm', parts: [], ...usage } }),
      readEvent('0.3', { kind: 'artifact-update', taskId: 't', artifact: {}, ...usage }),
    ];
    expect(found.map((event) => event?.usage)).toEqual(found.map(() => ({ tokens: 1 })));
    expect(
      readEvent('1.0', { ...task({}, {}), metadata: JSON.parse('{"__proto__": {"tollgate/usage": 1}}') as unknown })
        ?.usage,
    ).toBeUndefined();
  });

  it('says the same of an event in either version', () => {
    const valid = versions({ extras: true });
    fc.assert(
      fc.property(valid['1.0'].event, (event) => {
        const here = readEvent('1.0', event);
        expect(here).not.toBeNull();
        expect(TASK_STATES.some((state) => state === here!.state) || here!.state === null).toBe(true);
        expect(readEvent('0.3', translateEvent('1.0', '0.3', event))).toEqual(here);
      }),
    );
  });
});
