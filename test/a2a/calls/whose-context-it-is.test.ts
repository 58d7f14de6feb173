import { expect, test } from 'vitest';
import { MESSAGE_PRICE, refusalOf, useCallsWorld, WIRES } from './support/calls-world.ts';

const calls = useCallsWorld();

/** Agents know one client, the gateway: what they remember of "default" would be everybody's. */
test.each(WIRES)('a context is that of who used it first, also where no task is in it: $name', async (wire) => {
  const { url, agent } = await calls.serve({ version: 'both' });
  const contextId = 'default';
  const mine = calls.talk(url, wire);
  const theirs = calls.talk(url, wire, calls.world.stranger.key);
  const paid = await calls.spent(async () => {
    expect((await mine.sent('echo my secret', { message: { contextId } })).status).toBe(200);
    const heard = agent.asked.length;
    const refused = refusalOf(await theirs.sent('echo what did I say?', { message: { contextId } }));
    expect(refused).toMatchObject({ code: -32602, message: expect.stringContaining('omit the contextId') as string });
    expect(agent.asked.length).toBe(heard);
    expect((await mine.sent('echo again', { message: { contextId } })).status).toBe(200);
  });
  expect(paid).toBe(2n * MESSAGE_PRICE);
  const stranger = await calls.world.spine.app.ledger.balance(`escrow:${calls.world.stranger.account}`);
  expect(stranger?.locked).toBe(0n);
});
