import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { escrowOf, findTransfer, treasuryOf, type Ledger } from '#billing';
import { MICRO_USD_MAX } from '#billing/amounts';
import {
  createWithdrawalRows,
  type Withdrawal,
  type WithdrawalRows,
} from '../../../src/billing/chains/withdrawal-rows.ts';
import { outgoingOf } from '../../../src/billing/chains/books.ts';
import { createWithdrawals } from '../../../src/billing/chains/withdrawals.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

// Two gateways carry one withdrawal on, while the money for it comes in. Whatever the one says of it, the money is
// there once: with its owner where it is refused, else on its way.

const NETWORK = 'eip155:1';
const AMOUNT = 5n;

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  let ledger: Ledger;
  let rows: WithdrawalRows;
  beforeAll(async () => {
    engine = await openEngine(name);
    ledger = await createLedger({ database: engine.database });
    rows = createWithdrawalRows(engine.database, { now: Date.now });
  });
  afterAll(async () => {
    const report = await audit(engine.database);
    await ledger?.close();
    await engine?.dispose();
    expect(report.ok, JSON.stringify(report.checks)).toBe(true);
  });

  /** `after`: what happens after each of its transfers; where it throws, the gateway has died. */
  const gateway = ({ after }: { after?: () => Promise<void> } = {}) =>
    createWithdrawals({
      rows,
      ledger: {
        async transfer(request) {
          const result = await ledger.transfer(request);
          await after?.();
          return result;
        },
        balance: ledger.balance,
      },
      transferOf: (id) => findTransfer(engine.database, id),
      chainOf: () => null,
      policyOf: () => ({ minimum: 1n, dailyMax: MICRO_USD_MAX }),
      haltOf: async () => null,
      unfinal: async () => false,
      paidIn: async () => MICRO_USD_MAX,
      now: Date.now,
    });

  /** A withdrawal without money for it; `comes` brings the money. */
  const ask = async (id: string) => {
    const source = escrowOf(id);
    await rows.insert(
      { id, network: NETWORK, account: id, source, address: 'there', amount: AMOUNT, handedOut: false },
      0,
    );
    const treasury = treasuryOf(NETWORK);
    const comes = async () => {
      await ledger.transfer({ id: `comes:${id}`, from: treasury, to: source, amount: AMOUNT, memo: 'comes' });
    };
    return { asked: (await rows.find(id))!, comes };
  };
  const dies = async () => Promise.reject(new Error('it died'));
  const diesAfter = (calls: number) => {
    let left = calls;
    return async () => ((left -= 1) === 0 ? dies() : undefined);
  };
  const outgoing = async () => (await ledger.balance(outgoingOf(NETWORK)))?.available ?? 0n;

  /** Looks at it as often as a gateway may, with the money there; says what became of it. */
  const ends = async ({ id, source }: Withdrawal, before: bigint) => {
    for (let look = 0; look < 3; look += 1) await gateway().carryOn((await rows.find(id))!);
    const { state } = (await rows.find(id))!;
    const isTaken = state === 'queued';
    expect({ source: (await ledger.balance(source))!.available, outgoing: (await outgoing()) - before }).toEqual({
      source: isTaken ? 0n : AMOUNT,
      outgoing: isTaken ? AMOUNT : 0n,
    });
    return state;
  };

  test('one takes the money after another has refused it, and dies', async () => {
    const before = await outgoing();
    const { asked, comes } = await ask('late');
    await gateway().carryOn(asked);
    expect((await rows.find('late'))!.state).toBe('refused');
    await comes();
    await gateway({ after: dies })
      .carryOn(asked)
      .catch(() => {});
    expect(await ends(asked, before)).toBe('refused');
  });

  test.each([
    ['dies', true],
    ['lives', false],
  ])('one takes the money while another is about to refuse it, and %s', async (_, died) => {
    const before = await outgoing();
    const { asked, comes } = await ask(`between-${died}`);
    let transfers = 0;
    const refusing = gateway({
      async after() {
        if ((transfers += 1) > 1) return;
        await comes();
        await gateway(died ? { after: dies } : {})
          .carryOn(asked)
          .catch(() => {});
      },
    });
    await refusing.carryOn(asked);
    expect(await ends(asked, before)).toBe('queued');
  });

  test('the one that refuses it dies before it says so', async () => {
    const before = await outgoing();
    const { asked, comes } = await ask('half');
    await expect(gateway({ after: diesAfter(2) }).carryOn(asked)).rejects.toThrow('it died');
    expect((await rows.find('half'))!.state).toBe('requested');
    await comes();
    expect(await ends(asked, before)).toBe('refused');
  });

  test('both at once', async () => {
    const before = await outgoing();
    const { asked, comes } = await ask('both');
    await Promise.all([gateway().carryOn(asked), comes(), gateway().carryOn(asked)]);
    expect(['queued', 'refused']).toContain(await ends(asked, before));
  });

  test('one of a version that refuses without a record is overtaken', async () => {
    const before = await outgoing();
    const { asked, comes } = await ask('old');
    await comes();
    const overtaken = gateway({
      async after() {
        await rows.move('old', 'requested', 'refused', null, 'The balance is 0 USDC');
      },
    });
    await overtaken.carryOn(asked);
    expect(await ends(asked, before)).toBe('returned');
  });
});
