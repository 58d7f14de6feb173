import { expect, test } from 'vitest';
import { unlessStalled } from '../../support/unless-stalled.ts';
import { MESSAGE_PRICE, refusalOf, useCallsWorld } from './support/calls-world.ts';
import { artifactEvent } from './support/breaking-agent.ts';
import { serveRaw, statusEvent, taskResult, writeEvent } from './support/raw-served.ts';

const calls = useCallsWorld('[upstream]\nhead_timeout_ms = 400\nidle_timeout_ms = 400\ncooldown_ms = 1\n');

test('an agent that does not answer in time has failed, and is paid nothing', () =>
  unlessStalled(100, async () => {
    const { url } = await serveRaw(calls.world, () => {});
    expect(
      await calls.spent(async () => {
        const refused = refusalOf(await calls.talk(url).sent('work'));
        expect(refused?.message).toContain('did not answer in time');
      }),
    ).toBe(0n);
  }));

test('the stream of an agent that falls silent is ended with the reason, and its task goes on', () =>
  unlessStalled(100, async () => {
    let state = 'WORKING';
    const { url } = await serveRaw(calls.world, (exchange) => {
      if (exchange.request.method === 'GetTask') return exchange.result(taskResult('silent', state).task);
      return writeEvent(exchange, taskResult('silent', 'WORKING'));
    });
    expect(
      await calls.spent(async () => {
        const talk = calls.talk(url);
        const stream = await talk.stream('work');
        expect(await stream.next()).toMatchObject({ id: 'silent', state: 'working' });
        await expect(stream.next()).rejects.toThrow(
          'The stream was ended because the provider fell silent in the middle of its answer; the task continues, and tasks/get shows its state',
        );
        state = 'COMPLETED';
        await talk.reaches('silent', 'completed');
      }),
    ).toBe(MESSAGE_PRICE);
  }));

test('who listens to a task is not sent away by its silence', () =>
  unlessStalled(100, async () => {
    const { url, agent } = await calls.serve();
    const talk = calls.talk(url);
    expect(
      await calls.spent(async () => {
        const { id } = await talk.task('wait', { immediately: true });
        const stream = await talk.subscribe(id);
        expect(await stream.next()).toMatchObject({ id });
        const end = stream.rest();
        // Longer than an agent may be silent otherwise: a call to one that hangs ends within that time.
        const hanging = await serveRaw(calls.world, () => {});
        for (let n = 0; n < 2; n += 1) expect(refusalOf(await calls.talk(hanging.url).sent('work'))).not.toBeNull();
        agent.finish(id);
        expect((await end).at(-1)).toMatchObject({ state: 'completed' });
      }),
    ).toBe(MESSAGE_PRICE);
  }));

/** The time of every running task is over, and the gateway looks at it at once. */
const TIME_IS_OVER = {
  name: 'test/time-is-over',
  text: 'UPDATE tasks SET expires_at = 0, next_look_at = 0 WHERE ended_at IS NULL',
};

test.each([
  ['output', 'per_call = 0.001', 'cut', MESSAGE_PRICE],
  // What it does not report is not measured: seconds in which an agent hangs are no work.
  ['output', 'per_call = 0.001\nper_second = 0.01\ncompletion = 1000\nper_call_max = 1', 'cut', MESSAGE_PRICE],
  ['a status', 'per_call = 0.001', 'free', 0n],
])('an agent that shows %s and then hangs, priced by %j, ends as %s', (shown, pricing, outcome, charged) =>
  unlessStalled(100, async () => {
    const { url } = await serveRaw(
      calls.world,
      (exchange) => {
        const { method, body } = exchange.request;
        if (method !== 'SendStreamingMessage') return;
        const taskId = `hangs-${String(JSON.parse(body).id)}`;
        writeEvent(exchange, taskResult(taskId, 'WORKING'));
        writeEvent(exchange, shown === 'output' ? artifactEvent(taskId, 'half') : statusEvent(taskId, 'WORKING'));
      },
      { pricing },
    );
    expect(
      await calls.spent(async () => {
        const stream = await calls.talk(url).stream('work');
        for (let n = 0; n < 2; n += 1) await stream.next();
        await expect(stream.next()).rejects.toThrow('fell silent');
        expect(await calls.locked()).toBeGreaterThan(0n);
        await calls.world.spine.app.database.query(TIME_IS_OVER);
        await expect.poll(calls.locked).toBe(0n);
        expect(await calls.world.spine.generation(stream.headers.get('x-generation-id'))).toMatchObject({
          outcome,
          finish_reason: 'gave_up',
          cost_micro_usdc: Number(charged),
        });
      }),
    ).toBe(charged);
  }),
);
