import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { PaymentRequired } from '@x402/fetch';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { startGateway, type Gateway } from '../../support/gateway.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { ask, modelBlock } from '../../support/spine.ts';
import { DOMAIN, signInHeaders } from '../../support/wallets.ts';
import { expectBalanced, later } from './support/books.ts';
import { baseSepolia, CHAINS_TOML, chainToml, freshSignIn } from './support/chains-spine.ts';
import { fundPayer, paymentHeaders, PURSE, type Payer } from './support/payer.ts';

// The gateway's process is killed while wallets pay in, pay for chats and withdraw, as they would: the same payment
// and the same withdrawal again until they are answered. In the end each was carried out once.

const KILLS = process.env['TOLLGATE_DEEP'] === '1' ? 60 : 2;
/** Of each kind, between two times that all of them are at their ends. */
const CLIENTS = 3;
const KILLS_A_ROUND = 2;
const PAID_IN = 700_000n;
const PAID_FOR_CHAT = 500_000n;
const WITHDRAWN = 300_000n;
/** 20 tokens. */
const COST = 100_000n;

let chain: EvmMoney;
let provider: TestProvider;
let gateway: Gateway;
beforeAll(async () => {
  [chain, provider] = await Promise.all([baseSepolia(), startProvider({ logMax: 0 })]);
  gateway = await startGateway({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN, TEST_UPSTREAM_KEY: 'unused' },
    toml: `${CHAINS_TOML}wait_ms = 1000\n${chainToml(chain)}${modelBlock({ name: 'delphi/oracle', provider: 'Delphi', url: provider.url, prompt: 0, completion: 5_000 })}`,
  });
});
afterAll(async () => {
  await gateway?.stop();
  await provider?.stop();
  await chain?.stop();
});

/** Nobody answered, or not yet. */
const AGAIN = new Set([202, 409, 500, 502, 503]);
const WITHIN_MS = 60_000;

/** Asks until it is answered, whoever dies meanwhile. */
async function untilAnswered(path: string, init: () => Promise<RequestInit>, right: number): Promise<Response> {
  for (const deadline = performance.now() + WITHIN_MS; ;) {
    let last = 'no connection';
    try {
      const response = await fetch(`${gateway.baseUrl}/api/v1${path}`, await init());
      const text = await response.text();
      // Charged once it is not run again, where its reply died with the process.
      if (response.status === right || text.includes('was charged once, but its reply was lost'))
        return new Response(text, { headers: response.headers });
      last = `${response.status} ${text}`;
      if (!AGAIN.has(response.status)) throw new Error(`${path} answered ${last}`);
    } catch (error) {
      // What fetch throws where nobody listens, or who listened is gone.
      if (!(error instanceof TypeError)) throw error;
    }
    if (performance.now() > deadline) throw new Error(`${path} was not answered: ${last}`);
    await pause(20);
  }
}

const posting = (body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

/** A request without an account, and the same with one payment until it is answered. */
async function payInPlace(payer: Payer, path: string, body: object): Promise<void> {
  const asked = await untilAnswered(path, async () => posting(body), 402);
  const required = JSON.parse(
    Buffer.from(asked.headers.get('payment-required')!, 'base64').toString(),
  ) as PaymentRequired;
  const payment = await payer.client.createPaymentPayload(required);
  await untilAnswered(path, async () => posting(body, paymentHeaders(payment)), 200);
}

const payIn = (payer: Payer) => payInPlace(payer, '/topup', { amount_micro_usdc: Number(PAID_IN) });

async function withdraw(payer: Payer): Promise<void> {
  const key = randomUUID();
  const body = { network: chain.network, source: 'balance', amount_micro_usdc: Number(WITHDRAWN) };
  const sign = async () =>
    posting(body, { ...(await freshSignIn(`${gateway.baseUrl}/api/v1`, payer)), 'idempotency-key': key });
  await untilAnswered('/withdrawals', sign, 201);
}

interface Movement {
  readonly status: string;
  readonly credited_micro_usdc?: number;
  readonly amount_micro_usdc: number;
}

const own = async <T>(payer: Payer, path: string) =>
  (await (await untilAnswered(path, async () => ({ headers: await signInHeaders(payer) }), 200)).json()) as T;
const movements = async (payer: Payer, of: 'deposits' | 'withdrawals') =>
  (await own<{ data: readonly Movement[] }>(payer, `/${of}`)).data;
const balanceOf = async (payer: Payer) =>
  BigInt((await own<{ balance_micro_usdc: number }>(payer, '/session/balance')).balance_micro_usdc);

/** Where money was found after kills, and how often. */
const found = new Map<string, number>();

/** What a process that is gone had taken for a while is due: as if that while had passed. */
async function letTimePass(): Promise<void> {
  const database = await openDatabase({ dataDir: gateway.dataDir });
  for (const { state } of await database.query(OPEN)) found.set(String(state), (found.get(String(state)) ?? 0) + 1);
  for (const due of DUE) await database.query(due);
  await database.close();
}
const OPEN = adHoc(
  "SELECT 'deposit ' || state AS state FROM deposits WHERE state <> 'final' UNION ALL SELECT 'withdrawal ' || state FROM withdrawals WHERE state <> 'paid' UNION ALL SELECT 'lock ' || state FROM locks WHERE state = 'held'",
);
const DUE = ['deposits', 'withdrawals'].map((table) =>
  adHoc(`UPDATE ${table} SET next_look_at = 0 WHERE next_look_at IS NOT NULL`),
);

test(
  `${KILLS} kills: every payment is credited once, every withdrawal is paid once`,
  { timeout: 60_000 + KILLS * 10_000 },
  async () => {
    let kills = 0;
    const payers: { readonly payer: Payer; readonly kind: 'saver' | 'asker' }[] = [];
    for (let round = 0; round < KILLS / KILLS_A_ROUND; round += 1) {
      const all = await Promise.all(
        Array.from(
          { length: 2 * CLIENTS },
          async (_, index) => ({ payer: await fundPayer(chain), kind: index % 2 === 0 ? 'saver' : 'asker' }) as const,
        ),
      );
      payers.push(...all);
      let over = false;
      const working = Promise.all(
        all.map(async ({ payer, kind }) => {
          if (kind === 'asker')
            return payInPlace(
              payer,
              '/chat/completions',
              ask('hello !tokens:20 !token-ms:5', { model: 'delphi/oracle', stream: true }),
            );
          await payIn(payer);
          await withdraw(payer);
          await later([], 'it is paid', async () =>
            (await movements(payer, 'withdrawals')).every(({ status }) => status === 'paid') ? true : null,
          );
        }),
      ).finally(() => (over = true));
      working.catch(() => {});
      const blocks = later([chain], 'the round is over', async () => (over ? true : null));
      blocks.catch(() => {});
      for (let kill = 0; kill < KILLS_A_ROUND && !over; kill += 1) {
        await pause(randomInt(kill === 0 ? 300 : 700));
        await gateway.kill9();
        kills += 1;
        await letTimePass();
        await gateway.restart();
      }
      await working;
      await blocks;
    }

    console.log(
      `  ${kills} kills, ${payers.length} payments; on its way then: ${[...found].map(([state, count]) => `${state} ${count}`).join(', ')}`,
    );
    await expectBalanced({ origin: gateway.baseUrl, adminKey: gateway.adminKey }, [chain]);
    for (const { payer, kind } of payers) {
      const paid = kind === 'saver' ? PAID_IN : PAID_FOR_CHAT;
      const back = kind === 'saver' ? WITHDRAWN : 0n;
      expect(await movements(payer, 'deposits')).toMatchObject([
        { status: 'final', credited_micro_usdc: Number(paid) },
      ]);
      expect(await movements(payer, 'withdrawals')).toMatchObject(
        kind === 'saver' ? [{ status: 'paid', amount_micro_usdc: Number(back) }] : [],
      );
      expect(await payer.held()).toBe(PURSE - paid + back);
      expect(await balanceOf(payer)).toBe(paid - (kind === 'saver' ? back : COST));
    }
  },
);
