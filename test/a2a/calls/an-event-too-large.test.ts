import { expect, test } from 'vitest';
import { artifactEvent } from './support/breaking-agent.ts';
import { LEGACY_RPC, MESSAGE_PRICE, REST, RPC, useCallsWorld } from './support/calls-world.ts';
import { BRIDGES } from './support/endpoints.ts';
import { serveRaw, taskResult, writeEvent } from './support/raw-served.ts';

// An agent whose answer is larger than the gateway takes has worked: its call ends there, as cut, and is paid.

const LIMIT = 64 * 1024;
const calls = useCallsWorld(`[upstream]\nreply_bytes_max = ${LIMIT}\nimages_reply_bytes_max = ${LIMIT}\n`);
const PRICE = Number(MESSAGE_PRICE);
let served = 0;

/** Streams an artifact that is too large; its task, which it then shows as completed, is so as well. */
async function serveLarge(pricing = 'per_call = 0.001') {
  served += 1;
  const taskId = `t-large-${served}`;
  const text = 'x'.repeat(LIMIT);
  const world = await serveRaw(
    calls.world,
    (exchange) => {
      const { request, result } = exchange;
      const artifact = { artifactId: 'a', parts: [{ kind: 'text', text }] };
      if (request.method === 'tasks/cancel') return exchange.error(-32002, 'it is completed');
      if (request.method === 'message/stream') {
        writeEvent(exchange, { kind: 'task', id: taskId, contextId: 'c', status: { state: 'working' } });
        writeEvent(exchange, { kind: 'artifact-update', taskId, contextId: 'c', artifact });
        return void exchange.response.end();
      }
      if (request.method === 'CancelTask') return exchange.error(-32002, 'it is completed');
      if (request.method === 'GetTask')
        return result(taskResult(taskId, 'COMPLETED', { artifacts: [{ artifactId: 'a', parts: [{ text }] }] }).task);
      writeEvent(exchange, taskResult(taskId, 'WORKING'));
      writeEvent(exchange, artifactEvent(taskId, text));
      exchange.response.end();
    },
    { pricing },
  );
  return { ...world, taskId };
}

test.each(BRIDGES)('by $name', async (door) => {
  const { service } = await serveLarge();
  expect(
    await calls.spent(async () => {
      const told = await door.ask(calls, service);
      expect(told).toMatchObject({
        state: 'canceled',
        cost: PRICE,
        error: expect.stringContaining(`more than ${LIMIT} bytes`),
      });
      expect(told.finish).toBe('length');
      expect(await calls.locked()).toBe(0n);
      expect(await calls.world.spine.generation(told.id)).toMatchObject({
        outcome: 'cut',
        finish_reason: 'too_large',
        cost_micro_usdc: PRICE,
        error_code: 'reply_cut',
        status: 500,
        error: expect.stringContaining(`more than ${LIMIT} bytes`) as string,
      });
    }),
  ).toBe(MESSAGE_PRICE);
});

test.each([RPC, REST, LEGACY_RPC])('by the stream of an A2A client: $name', async (wire) => {
  const { url, taskId } = await serveLarge();
  const talk = calls.talk(url, wire);
  expect(
    await calls.spent(async () => {
      const stream = await talk.stream('work');
      const events = await stream.rest();
      const last = JSON.stringify(stream.wire.at(-1));
      expect(events.at(-1)).toMatchObject({ type: 'status', state: 'canceled' });
      expect(last).toMatch(/canceled/i);
      expect(last).toContain('tollgate/cut');
      expect(last).toContain(String.raw`\"cost\":\"0.001\"`);
      expect(await calls.locked()).toBe(0n);
      const shown = JSON.stringify(await talk.get(taskId));
      expect(shown).toMatch(/canceled/i);
      expect(shown).toContain('Ask for a smaller answer');
    }),
  ).toBe(MESSAGE_PRICE);
});

test('priced by its use, what came of it is charged as it is measured', async () => {
  const { url } = await serveLarge('per_call = 0.001\ncompletion = 1\nper_call_max = 0.1');
  expect(await calls.spent(async () => void (await (await calls.talk(url).stream('work')).rest()))).toBe(
    1_000n + BigInt(LIMIT / 4),
  );
});
