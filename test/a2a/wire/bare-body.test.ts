import { describe, expect, it } from 'vitest';
import {
  bareFromResult,
  bareFromSend,
  isBareBody,
  resultFromBare,
  sendFromBare,
} from '../../../src/a2a/wire/bare-body.ts';
import { readSend } from '../../../src/a2a/wire/read-send.ts';

const bare = { message: { messageId: 'm', role: 'user', parts: [{ text: 'hello' }] } };
const send = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] } };
const task = {
  id: 't',
  contextId: 'c',
  status: { state: 'completed' },
  artifacts: [{ artifactId: 'a', parts: [{ text: 'hi' }] }],
};
const result = { task: { ...task, status: { state: 'TASK_STATE_COMPLETED' } } };

describe('the bare form of the interface specification', () => {
  it('is told from JSON-RPC', () => {
    expect([bare, { ...bare, configuration: {} }].map(isBareBody)).toEqual([true, true]);
    expect(
      [null, [], 'x', {}, { message: 'hello' }, { ...bare, jsonrpc: '2.0' }, { ...bare, method: 'message/send' }].some(
        isBareBody,
      ),
    ).toBe(false);
  });

  it('becomes parameters of 1.0, with parts of either version, and back', () => {
    expect(sendFromBare(bare)).toEqual(send);
    expect(
      sendFromBare({ message: { ...bare.message, kind: 'message', parts: [{ kind: 'text', text: 'hello' }] } }),
    ).toEqual(send);
    expect(readSend('1.0', sendFromBare(bare))).toMatchObject({ messageId: 'm', texts: ['hello'] });
    expect(bareFromSend(send)).toEqual(bare);
  });

  it('its reply is the task itself', () => {
    expect(bareFromResult(result)).toEqual(task);
    expect(resultFromBare(task)).toEqual(result);
    expect(
      resultFromBare({
        ...task,
        kind: 'task',
        artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text: 'hi' }] }],
      }),
    ).toEqual(result);
    expect(resultFromBare(result)).toEqual(result);
  });

  it("an agent's message becomes a task that is completed", () => {
    const message = {
      messageId: 'm2',
      contextId: 'c',
      role: 'ROLE_AGENT',
      parts: [{ text: 'hi' }],
      metadata: { a: 1 },
    };
    expect(bareFromResult({ message })).toEqual({
      id: 'm2',
      contextId: 'c',
      status: { state: 'completed' },
      artifacts: [{ artifactId: 'm2', parts: [{ text: 'hi' }] }],
      metadata: { a: 1 },
    });
  });

  it.each([null, 1, [], {}, { id: 't' }, { statusUpdate: {} }])('%j is no reply', (value) => {
    expect([bareFromResult(value), resultFromBare(value)]).toEqual([null, null]);
  });
});
