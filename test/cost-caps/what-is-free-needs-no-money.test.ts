import { describe, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { createPaperChain } from '../support/paper-chain.ts';
import { ENDPOINTS } from './routes.ts';
import { CHEAP, useCapWorld } from './world.ts';

// A price of 0 needs no balance and no escrow, whatever the route.

const WAYS = [
  { name: 'without a chain', options: {} },
  { name: 'where a chain could be paid over', options: { payments: createPaperChain().payments } },
  { name: 'beside a provider that takes money', options: { prices: { Free: '0', Cheap: CHEAP } } },
];

describe.each(WAYS)('$name', ({ options }) => {
  const world = useCapWorld({ prices: { Free: '0' }, credit: '0', ...options });

  test.each(ENDPOINTS)('an account that was never funded calls at $name', async (door) => {
    const { status, text, cost } = await world.ask(door, {});
    expect(status, text).toBe(200);
    expect(text).toContain('did complete');
    expect(cost).toBe(0n);
  });

  test('it is no funded account afterwards', async () => {
    await world.spine.quiet();
    expect(await world.spine.app.ledger.balance(escrowOf(world.spine.account))).toBeNull();
  });
});

describe('where a chain could be paid over', () => {
  const world = useCapWorld({ prices: { Free: '0' }, payments: createPaperChain().payments });

  test.each(ENDPOINTS.filter(({ session }) => !session))(
    'a stranger is asked for a credential and not for money at $name',
    async (door) => {
      const { status, text } = await world.ask(door, {}, { stranger: true });
      expect(
        status === 401 || text.includes('unauthorized') || text.includes('needs an account'),
        `${status} ${text}`,
      ).toBe(true);
      expect(text).not.toMatch(/accepts|Insufficient|did complete/);
    },
  );
});
