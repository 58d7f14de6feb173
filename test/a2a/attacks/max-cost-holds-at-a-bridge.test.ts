import { expect, test } from 'vitest';
import { refusalOf, useCallsWorld } from '../calls/support/calls-world.ts';

const calls = useCallsWorld();

const said = (more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] },
  ...more,
});

test.each([
  ['the header', said(), { 'x-max-cost': '0.000001' }, 'x-max-cost'],
  ['the metadata', said({ metadata: { 'tollgate/max_cost': '0.000001' } }), {}, 'tollgate/max_cost'],
])('a model that is called as an agent costs no more than %s says', async (_what, params, headers, name) => {
  const talk = calls.talk(`${calls.world.spine.origin}/a2a/model/test/model`);
  expect(
    await calls.spent(async () => {
      expect(refusalOf(await talk.call('SendMessage', params, headers))?.message).toContain(`${name} is 0.000001 USD`);
    }),
  ).toBe(0n);
  expect(refusalOf(await talk.call('SendMessage', said(), { 'x-max-cost': '1' }))).toBeNull();
});
