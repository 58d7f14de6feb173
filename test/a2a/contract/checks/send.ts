import { expect } from 'vitest';
import { expectError, expectRefused, type Checks } from '../bench.ts';
import { readEvent, TERMINAL, writeMessage } from '../shapes.ts';

/** Send Message (§3.1.1, §3.2.2, §3.2.4; 0.3 §7.1). */
export const sendChecks: Checks = {
  'SEND-01': async ({ talk }) => {
    const message = await talk.send('echo hello');
    expect(message).toMatchObject({ type: 'message', text: 'hello', role: 'agent' });
    const task = await talk.send('task hello');
    expect(task).toMatchObject({ type: 'task', state: 'completed' });
  },
  'SEND-02': async ({ talk, agent }) => {
    const finished = agent.waits().then((id) => {
      agent.finish(id);
      return id;
    });
    const [task, id] = await Promise.all([talk.task('wait'), finished]);
    expect(task).toMatchObject({
      id,
      state: 'completed',
      artifacts: [{ parts: [{ kind: 'text', value: 'finished' }] }],
    });
  },
  'SEND-03': async ({ talk }) => {
    const task = await talk.task('ask');
    expect(task.state).toBe('input-required');
  },
  'SEND-04': async ({ talk, agent }) => {
    const task = await talk.task('wait', { immediately: true });
    expect(['submitted', 'working']).toContain(task.state);
    agent.finish(task.id);
    await talk.reaches(task.id, 'completed');
  },
  'SEND-05': async ({ talk }) => {
    expect(await talk.send('echo at once', { immediately: true })).toMatchObject({ type: 'message', text: 'at once' });
  },
  'SEND-06': async ({ talk }) => {
    const whole = await talk.task('stream 3');
    expect(whole.history.length).toBeGreaterThan(1);
    const short = await talk.task('stream 3', { historyLength: 1 });
    expect(short.history).toHaveLength(1);
    expect(short.history[0]?.text).toBe('step 3');
    const none = await talk.task('stream 3', { historyLength: 0 });
    expect(none.history).toEqual([]);
  },
  'SEND-07': async (bench) => {
    const reply = await bench.talk.sent('task x', { message: { taskId: 'no-such-task' } });
    expectError(reply, 'taskNotFound', bench);
  },
  'SEND-08': async ({ talk }) => {
    const tasks = await Promise.all([talk.task('task a'), talk.task('task b'), talk.task('task c')]);
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(3);
    for (const { id } of tasks) expect(id).not.toBe('');
  },
  'SEND-09': async (bench) => {
    const { id } = await bench.talk.task('task done');
    expectError(await bench.talk.sent('task more', { message: { taskId: id } }), 'unsupportedOperation', bench);
  },
  'SEND-09-0.3': async ({ talk }) => {
    const { id } = await talk.task('task done');
    expectRefused(await talk.sent('task more', { message: { taskId: id } }));
  },
  'SEND-10': async (bench) => {
    expectError(await bench.talk.call('SendMessage', { configuration: {} }), 'invalidParams', bench);
  },
  'SEND-11': async (bench) => {
    const { messageId: _, ...message } = writeMessage(bench.talk.version, 'task x');
    expectError(await bench.talk.call('SendMessage', { message }), 'invalidParams', bench);
  },
  'SEND-12': async (bench) => {
    expectError(
      await bench.talk.call('SendMessage', { message: writeMessage(bench.talk.version, []) }),
      'invalidParams',
      bench,
    );
  },
  'SEND-13': async (bench) => {
    const picky = await bench.other({ inputModes: ['text/plain'] });
    const picture = { kind: 'bytes', value: 'AAAA', mediaType: 'image/tiff', filename: 'a.tiff' } as const;
    expectError(await picky.talk.sent([picture]), 'contentTypeNotSupported', picky);
  },
  'SEND-14': async ({ talk }) => {
    const message = { ...writeMessage(talk.version, 'task x'), notInTheSchema: { a: 1 } };
    const reply = await talk.call('SendMessage', { message, alsoNotInTheSchema: true });
    expect(readEvent(reply.result(), talk.version)).toMatchObject({ type: 'task', state: 'completed' });
  },
  'SEND-15': async ({ talk }) => {
    for (const [word, state] of [
      ['fail', 'failed'],
      ['reject', 'rejected'],
    ] as const) {
      const task = await talk.task(word);
      expect(task.state).toBe(state);
      expect(TERMINAL).toContain(task.state);
    }
  },
  'SEND-16': async (bench) => {
    const { talk } = bench;
    const body =
      talk.binding === 'JSONRPC'
        ? { jsonrpc: '2.0', id: 1, method: methodOf(talk.version), params: { message: 'a text' } }
        : { message: 'a text' };
    const reply = await talk.raw('POST', talk.binding === 'JSONRPC' ? '/' : '/message:send', JSON.stringify(body));
    expectError(reply, 'invalidParams', bench);
  },
};

const methodOf = (version: string): string => (version === '1.0' ? 'SendMessage' : 'message/send');
