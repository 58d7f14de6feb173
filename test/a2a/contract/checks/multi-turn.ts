import { expect } from 'vitest';
import { expectRefused, type Checks } from '../bench.ts';

/** Conversations of several turns, and tasks that have ended (§3.4, §3.7; 0.3 §6.1, §7.1). */
export const multiTurnChecks: Checks = {
  'TURN-01': async ({ talk }) => {
    const task = await talk.task('task x');
    expect(task.contextId).toMatch(/./u);
    const message = await talk.send('echo x');
    expect(message).toMatchObject({ type: 'message', contextId: expect.stringMatching(/./u) });
  },
  'TURN-02': async ({ talk }) => {
    const contextId = `client-made-${crypto.randomUUID()}`;
    const reply = await talk.sent('task x', { message: { contextId } });
    if (reply.error) return expect([-32602, -32004]).toContain(reply.error.code);
    expect(JSON.stringify(reply.result())).toContain(contextId);
  },
  'TURN-03': async ({ talk }) => {
    const asked = await talk.task('ask');
    const done = await talk.task('the red one', { message: { taskId: asked.id } });
    expect(done).toMatchObject({ id: asked.id, contextId: asked.contextId, state: 'completed' });
  },
  'TURN-04': async ({ talk }) => {
    const asked = await talk.task('ask');
    expectRefused(
      await talk.sent('the red one', { message: { taskId: asked.id, contextId: 'quite-another-context' } }),
    );
    expect((await talk.get(asked.id)).state).toBe('input-required');
  },
  'TURN-05': async ({ talk }) => {
    const asked = await talk.task('ask');
    const { id: taskId, contextId } = asked;
    const done = await talk.task('the red one', { message: { taskId, contextId } });
    expect(done).toMatchObject({ id: taskId, state: 'completed' });
    expect(done.artifacts[0]?.parts[0]?.value).toBe('answered: the red one');
  },
  'TURN-06': async ({ talk }) => {
    const done = await talk.task('task finished once');
    await talk.sent('task again', { message: { taskId: done.id } });
    await talk.call('CancelTask', { id: done.id });
    const after = await talk.get(done.id);
    expect({ state: after.state, artifacts: after.artifacts }).toEqual({
      state: done.state,
      artifacts: done.artifacts,
    });
    expect(after.status['timestamp']).toBe(done.status['timestamp']);
  },
  'TURN-07': async ({ talk }) => {
    const first = await talk.task('task one');
    const second = await talk.task('task two', { message: { contextId: first.contextId } });
    expect(second.contextId).toBe(first.contextId);
    expect(second.id).not.toBe(first.id);
  },
  'TURN-08': async ({ talk }) => {
    const asked = await talk.task('ask');
    await talk.task('the red one', { message: { taskId: asked.id } });
    const { history } = await talk.get(asked.id);
    const texts = history.map(({ text }) => text);
    expect(texts.filter((text) => ['ask', 'Which one?', 'the red one'].includes(text))).toEqual([
      'ask',
      'Which one?',
      'the red one',
    ]);
    expect(history.map(({ role }) => role)).toEqual(['user', 'agent', 'user']);
  },
  'TURN-09': async ({ talk }) => {
    const task = await talk.task('auth');
    expect(task.state).toBe('auth-required');
    expect(JSON.stringify(task.status['message'])).toContain('Sign in first.');
  },
  'TURN-10': async ({ talk }) => {
    const task = await talk.task('ask');
    expect(JSON.stringify(task.status['message'])).toContain('Which one?');
  },
};
