import { setTimeout as pause } from 'node:timers/promises';
import type { PaymentRequired } from '@x402/fetch';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { startCluster, startProcessCluster, type Cluster } from '../../support/cluster.ts';
import { signInHeaders } from '../../support/wallets.ts';
import { expectBalanced, type Operated } from './support/books.ts';
import { baseSepolia, CHAINS_TOML, chainToml } from './support/chains-spine.ts';
import { fundPayer, paymentHeaders, PURSE } from './support/payer.ts';

// Three gateways on one PostgreSQL, deep ones in processes of their own, are given the same payment by a crowd that
// does not wait for one another.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const TIMES = DEEP ? 500 : 30;
const AMOUNT = 700_000n;
const WITHIN_MS = 60_000;

let chain: EvmMoney;
let cluster: Pick<Cluster<unknown>, 'stop'>;
let gateways: readonly Operated[];
beforeAll(async () => {
  chain = await baseSepolia();
  const options = { postgresUrl: inject('postgresUrl'), toml: CHAINS_TOML + chainToml(chain) };
  if (DEEP) {
    const processes = await startProcessCluster(options);
    cluster = processes;
    gateways = processes.gateways.map(({ baseUrl, adminKey }) => ({ origin: baseUrl, adminKey }));
  } else {
    const spines = await startCluster(options);
    cluster = spines;
    gateways = spines.gateways;
  }
});
afterAll(async () => {
  await cluster?.stop();
  await chain?.stop();
});

test(`${TIMES} times at once: it is taken once, and everybody is told so`, async () => {
  const payer = await fundPayer(chain);
  const topUp = ({ origin }: Operated, headers: Record<string, string> = {}) =>
    fetch(`${origin}/api/v1/topup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ amount_micro_usdc: Number(AMOUNT) }),
    });
  const asked = await topUp(gateways[0]!);
  expect(asked.status).toBe(402);
  const payment = await payer.client.createPaymentPayload((await asked.json()) as PaymentRequired);
  const headers = paymentHeaders(payment);
  // A crowd may meet a gateway that is busy, which says so; terms, which would have it pay again, never.
  const deadline = performance.now() + WITHIN_MS;
  const untilTaken = async (gateway: Operated) => {
    for (;;) {
      const response = await topUp(gateway, headers);
      const { data, error } = (await response.json()) as {
        data?: Record<string, unknown>;
        error?: { message: string };
      };
      const answer = {
        status: response.status,
        transaction: data?.['transaction'],
        credited: data?.['credited_micro_usdc'],
        error: error?.message,
      };
      if ((answer.status !== 202 && answer.status !== 503) || performance.now() > deadline) return answer;
      await pause(50);
    }
  };
  const answers = await Promise.all(
    Array.from({ length: TIMES }, (_, index) => untilTaken(gateways[index % gateways.length]!)),
  );
  const [first] = answers;
  expect(first).toEqual({
    status: 200,
    transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) as string,
    credited: Number(AMOUNT),
  });
  expect(answers.filter((answer) => answer.status !== 200 || answer.transaction !== first!.transaction)).toEqual([]);

  await expectBalanced(gateways[0]!, [chain]);
  expect(await chain.balanceOf(chain.treasury)).toBe(AMOUNT);
  expect(await payer.held()).toBe(PURSE - AMOUNT);
  for (const { origin } of gateways) {
    const own = async (path: string) =>
      (await fetch(`${origin}/api/v1${path}`, { headers: await signInHeaders(payer) })).json();
    expect(await own('/session/balance')).toMatchObject({ balance_micro_usdc: Number(AMOUNT) });
    expect(await own('/deposits')).toMatchObject({ data: [{ status: 'final', credited_micro_usdc: Number(AMOUNT) }] });
  }
});
