import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { atThisLoad } from '../../support/at-this-load.ts';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';
import { startRpcFaultProxy, type FaultRule, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const ROUNDS = DEEP ? 5 : 1;
const AT_ONCE = DEEP ? 10 : 1;
const PAID = 5_000_000n;
const WITHDRAWN = 2_000_000n;
const SENDS = ['eth_sendRawTransaction'];
const READS = [
  'eth_call',
  'eth_getLogs',
  'eth_getTransactionReceipt',
  'eth_getBlockByNumber',
  'eth_getTransactionCount',
];

let world: MoneyWorld<EvmMoney>;
let proxy: RpcFaultProxy;
beforeAll(async () => {
  world = await openMoneyWorld();
  proxy = await startRpcFaultProxy(world.chain.anvil.url);
});
afterEach(() => proxy.heal());
afterAll(async () => {
  await proxy.stop();
  await world.close();
});

const FAULTS: Readonly<Record<string, readonly FaultRule[]>> = {
  'is away': [{ fault: { kind: 'refuse' } }],
  'never answers': [{ fault: { kind: 'hang' } }],
  'answers with a page of a proxy': [{ fault: { kind: 'status', status: 502, body: '<html>Bad gateway</html>' } }],
  'answers nonsense': [{ fault: { kind: 'rewrite', result: () => ({ no: 'sense' }) } }],
  'loses its answer to the broadcast': [{ methods: SENDS, times: 2, fault: { kind: 'swallow' } }],
  'says it was broadcast and does not': [
    { methods: SENDS, times: 2, fault: { kind: 'drop', result: `0x${'11'.repeat(32)}` } },
  ],
  'says it was not broadcast and does': [{ methods: SENDS, times: 2, fault: { kind: 'rewrite', result: () => null } }],
  'is slow': [{ fault: { kind: 'delay', ms: 150 } }],
  'answers every second question': [
    { methods: READS, when: alternate(), fault: { kind: 'error', code: -32_005, message: 'too many requests' } },
  ],
  'is stuck at an old block': [
    {
      methods: READS,
      fault: {
        kind: 'rewrite',
        request: (request) => ({
          ...request,
          params: JSON.parse(
            JSON.stringify(request.params ?? [])
              .replaceAll('"latest"', '"0x1"')
              .replaceAll('"finalized"', '"0x1"'),
          ) as unknown,
        }),
      },
    },
  ],
};

function alternate(): () => boolean {
  let count = 0;
  return () => (count += 1) % 2 === 0;
}

/** By day those whose end does not wait for a second look; the rest when there is time. */
const BY_DAY = [
  'is away',
  'loses its answer to the broadcast',
  'says it was not broadcast and does',
  'is stuck at an old block',
];
const asked = Object.entries(FAULTS).filter(([name]) => DEEP || BY_DAY.includes(name));

test.each(asked)('a node that %s: credited once, paid out once', async (_name, rules) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const payers = await Promise.all(Array.from({ length: AT_ONCE }, () => world.payer()));
    // A sound node answers and is believed in this time, also on a machine with much else to do.
    const timeoutMs = atThisLoad(250);
    const gateway = await world.gateway({ rpcUrl: proxy.url, waitMs: atThisLoad(300), timeoutMs });
    const pay = async (payer: Payer, during: readonly FaultRule[]) => {
      proxy.heal();
      const { payment } = await gateway.sign(payer, PAID);
      proxy.set(...during);
      const owner = { account: payer.account, request: null };
      return {
        payment,
        state: await gateway.chains.deposits.take(payment, owner).then(
          ({ state }) => state,
          () => 'refused',
        ),
      };
    };
    const taken = [];
    for (const payer of payers) taken.push({ payer, ...(await pay(payer, rules)) });
    proxy.heal();
    await world.settle(gateway);
    for (const { payer, payment, state } of taken) {
      expect(['received', 'credited', 'final', 'refused']).toContain(state);
      // What was refused was never sent, and its payer is asked for another one.
      expect((await gateway.chains.depositRows.find(payment.id))!.state).toBe(state === 'refused' ? 'failed' : 'final');
      const paid = state === 'refused' ? 0n : PAID;
      expect(await world.available(escrowOf(payer.account))).toBe(paid);
      expect(await world.balanceOf(payer.address)).toBe(100_000_000n - paid);
      if (state === 'refused') expect((await pay(payer, [])).state).toBe('credited');
    }
    await world.settle(gateway);

    proxy.set(...rules);
    await Promise.all(
      payers.map((payer) =>
        gateway.chains.withdrawals.request({
          id: `${payer.account}-out`,
          network: world.network,
          account: payer.account,
          source: escrowOf(payer.account),
          address: payer.address,
          amount: WITHDRAWN,
          handedOut: false,
        }),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    proxy.heal();
    await world.settle(gateway);
    for (const payer of payers) {
      expect((await gateway.chains.withdrawalRows.find(`${payer.account}-out`))!.state).toBe('paid');
      expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID + WITHDRAWN);
      expect(await world.available(escrowOf(payer.account))).toBe(PAID - WITHDRAWN);
    }
    await gateway.close();
  }
});
