import { expect, test, vi } from 'vitest';
import { createClientRequests, NoAnswer } from '../../../src/mcp/request/client-requests.ts';
import { parseMessage, type ResponseMessage } from '../../../src/gateway/json-rpc/message.ts';

const response = (id: unknown, rest: object = { result: {} }) =>
  parseMessage(JSON.stringify({ jsonrpc: '2.0', id, ...rest })) as ResponseMessage;
const signal = new AbortController().signal;

test('a response reaches who waits for it, once', async () => {
  const requests = createClientRequests();
  const answer = requests.register('s', 'a', signal);
  expect(requests.count).toBe(1);
  expect(requests.resolve('s', response('a', { result: { n: 1 } }))).toBe(true);
  expect(requests.resolve('s', response('a'))).toBe(false);
  expect((await answer).result).toEqual({ n: 1 });
  expect(requests.count).toBe(0);
});

test('an error of the client is an answer', async () => {
  const requests = createClientRequests();
  const answer = requests.register('s', 'a', signal);
  requests.resolve('s', response('a', { error: { code: -1, message: 'no' } }));
  expect((await answer).error).toEqual({ code: -1, message: 'no' });
});

test('a response from another session, to another id, or without an object for a result is not taken', async () => {
  const requests = createClientRequests();
  const answer = requests.register('s', '1', signal);
  expect(requests.resolve('other', response('1'))).toBe(false);
  expect(requests.resolve('s', response('2'))).toBe(false);
  expect(requests.resolve('s', response(1))).toBe(false);
  expect(requests.resolve('s', response('1', { result: [] }))).toBe(false);
  expect(requests.count).toBe(1);
  requests.end('other');
  requests.end('s');
  await expect(answer).rejects.toThrow(new NoAnswer('its session ended'));
  expect(requests.count).toBe(0);
});

test('who waits too long is told', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const requests = createClientRequests();
    const answer = requests.register('s', 'a', signal);
    answer.catch(() => {});
    vi.advanceTimersByTime(5 * 60_000 - 1);
    expect(requests.count).toBe(1);
    vi.advanceTimersByTime(1);
    await expect(answer).rejects.toThrow('the client did not answer within 300 s');
    expect(requests.count).toBe(0);
    expect(requests.resolve('s', response('a'))).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

test('nobody waits on when the call is over, or for a call that is', async () => {
  const requests = createClientRequests();
  const over = new AbortController();
  const answer = requests.register('s', 'a', over.signal);
  over.abort();
  await expect(answer).rejects.toThrow('the call ended before the client answered');
  await expect(requests.register('s', 'b', over.signal)).rejects.toThrow(NoAnswer);
  expect(requests.count).toBe(0);
});

test('so many wait in one session, and so many in all', async () => {
  const requests = createClientRequests({ sessionMax: 2, waitingMax: 3 });
  const waiting = [requests.register('s', 'a', signal), requests.register('s', 'b', signal)];
  await expect(requests.register('s', 'c', signal)).rejects.toThrow('too many requests wait for an answer');
  waiting.push(requests.register('t', 'a', signal));
  await expect(requests.register('u', 'a', signal)).rejects.toThrow('too many requests wait for an answer');
  requests.resolve('s', response('a'));
  waiting.push(requests.register('u', 'a', signal));
  for (const session of ['s', 't', 'u']) requests.end(session);
  expect((await Promise.allSettled(waiting)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
    'rejected',
  ]);
  expect(requests.count).toBe(0);
});
