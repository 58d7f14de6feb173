import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toFacilitatorSvmSigner } from '@x402/svm';
import { ExactSvmScheme } from '@x402/svm/exact/facilitator';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import type { Chain, SignedPayment } from '../../../src/billing/chains/chain.ts';
import { DEVNET } from '../../support/chain/solana-accounts.ts';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { newPayer, pay, send, transfer, type Payer } from '../../support/chain/solana-wallet.ts';

/**
 * A facilitator elsewhere: the x402 library's own behind HTTP. What it says is a hint; the chain decides, and is
 * searched where the facilitator says nothing.
 */
let stage: SolanaStage;
let operator: Payer;
let chain: Chain;
/** Answers in the facilitator's place: a status and a body, after it has done its work or instead of it. */
let spoil:
  | ((path: string, work: () => Promise<unknown>) => Promise<{ status: number; body: unknown } | 'hang'>)
  | null = null;
let url: URL;
const server = createServer((request, response) => {
  const answer = async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url!.split('/').at(-1)!;
    const body = chunks.length === 0 ? null : JSON.parse(Buffer.concat(chunks).toString());
    const signer = toFacilitatorSvmSigner(operator.signer, { defaultRpcUrl: stage.twin.url });
    const scheme = new ExactSvmScheme(signer);
    const work = async (): Promise<unknown> => {
      if (path === 'settle') return scheme.settle(body.paymentPayload, body.paymentRequirements);
      return {
        kinds: [{ x402Version: 2, scheme: 'exact', network: DEVNET, extra: { feePayer: operator.address } }],
        extensions: [],
        signers: {},
      };
    };
    const reply = spoil === null ? { status: 200, body: await work() } : await spoil(path, work);
    if (reply === 'hang') return;
    response.statusCode = reply.status;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(reply.body));
  };
  answer().catch(() => response.destroy());
});

beforeAll(async () => {
  stage = await solanaStage();
  operator = await newPayer();
  stage.twin.fundSol(operator.address);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/facilitate`);
  chain = stage.another({ facilitator: url });
  await chain.open();
});
afterEach(() => {
  spoil = null;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await stage.close();
});

async function paymentOf(amount = 1_000n): Promise<SignedPayment> {
  return chain.read(await pay(stage.twin, await stage.payer(), await chain.requirements(amount, 'solana:me')));
}

test('it pays the fee, verifies and settles', async () => {
  const payment = await paymentOf();
  expect(payment.requirements.extra['feePayer']).toBe(operator.address);
  expect(await chain.verify(payment)).toEqual({ account: payment.payerAccount });
  const { transaction } = await chain.submit(payment);
  expect(await chain.find(payment, transaction)).toMatchObject({
    state: 'settled',
    event: { transaction, amount: 1_000n, final: false },
  });
  // No hint, or a wrong one: it is found among what the payer's account was in.
  const other = stage.twin.chain.landed[0]!.signature;
  for (const hint of [null, other, 'x'.repeat(100), ''])
    expect(await chain.find(payment, hint)).toMatchObject({ state: 'settled', event: { transaction } });
});

test('it is shown nothing before a payment is kept: what is no good is refused without it', async () => {
  const asked: string[] = [];
  spoil = async (path, work) => (asked.push(path), { status: 200, body: await work() });
  const poor = chain.read(await pay(stage.twin, await stage.payer(1n), await chain.requirements(1_000n, null)));
  await expect(chain.verify(poor)).rejects.toMatchObject({
    name: 'PaymentProblem',
    message: /balance of the payer is lower/,
  });
  const good = await paymentOf();
  expect(await chain.verify(good)).toEqual({ account: good.payerAccount });
  const requirements = {
    ...good.requirements,
    extra: { ...good.requirements.extra, feePayer: stage.treasury.address },
  };
  await expect(chain.verify({ ...good, requirements })).rejects.toMatchObject({ name: 'PaymentProblem' });
  expect(asked).not.toContain('verify');
});

test('after a settlement that timed out, failed, was refused or makes no sense nothing is known, and the chain tells', async () => {
  const hasty = stage.another({ facilitator: url, timeoutMs: atThisLoad(400) });
  const ends = [
    async (work: () => Promise<unknown>) => (await work(), 'hang' as const),
    async (work: () => Promise<unknown>) => (await work(), { status: 502, body: 'bad gateway' }),
    async (work: () => Promise<unknown>) => (
      await work(),
      { status: 200, body: { success: false, errorReason: 'settlement_pending', transaction: '', network: DEVNET } }
    ),
    async (work: () => Promise<unknown>) => (
      await work(),
      { status: 400, body: { success: false, errorReason: 'duplicate_settlement', transaction: '', network: DEVNET } }
    ),
    async (work: () => Promise<unknown>) => (await work(), { status: 200, body: { yes: true } }),
  ];
  for (const end of ends) {
    const payment = await paymentOf();
    spoil = async (_, work) => end(work);
    await expect(hasty.submit(payment)).rejects.toMatchObject({ name: 'ChainUnavailable' });
    spoil = null;
    expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { amount: 1_000n } });
    // The facilitator sends it again, and it does not move money again.
    await chain.submit(payment).catch((error: Error) => expect(error.name).toBe('ChainUnavailable'));
    expect(stage.twin.chain.tokens(payment.payer)).toBe(10_000_000n - 1_000n);
  }
});

test('one that says settled and has sent nothing settles nothing; without a trace in finality the payment is lost', async () => {
  const payment = await paymentOf();
  const other = stage.twin.chain.landed.at(-1)!.signature;
  spoil = async () => ({ status: 200, body: { success: true, transaction: other, network: DEVNET } });
  expect(await chain.submit(payment)).toEqual({ transaction: other });
  expect(await chain.find(payment, other)).toEqual({ state: 'open' });
  stage.twin.advance(180);
  expect(await chain.find(payment, other)).toEqual({ state: 'open' });
  stage.twin.advance(180);
  expect(await chain.find(payment, other)).toMatchObject({ state: 'lost' });
});

test('a payer who was busy since does not hide a payment, and one who was busier than is searched leaves it open', async () => {
  const { twin } = stage;
  const payer = await stage.payer();
  twin.fundSol(payer.address);
  const payment = chain.read(await pay(twin, payer, await chain.requirements(5n, null)));
  const missing = chain.read(await pay(twin, payer, await chain.requirements(6n, null)));
  expect(await chain.find(missing, null)).toEqual({ state: 'open' });
  await chain.submit(payment);
  const busy = async (times: number) => {
    for (let at = 0; at < times; at += 1)
      await send(twin, payer, [transfer({ from: payer.address, to: payer.address, amount: BigInt(at + 1) })]);
  };
  await busy(120);
  expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { amount: 5n } });
  twin.advance(360);
  expect(await chain.find(missing, null)).toMatchObject({ state: 'lost' });
  await busy(100);
  twin.advance(40);
  expect(await chain.find(missing, null)).toEqual({ state: 'open' });
});

test('it must settle on this network and name who pays the fee, who is not the treasury', async () => {
  const bodies = [
    { kinds: [], extensions: [], signers: {} },
    { kinds: [{ x402Version: 2, scheme: 'exact', network: DEVNET }], extensions: [], signers: {} },
    {
      kinds: [{ x402Version: 2, scheme: 'exact', network: DEVNET, extra: { feePayer: stage.treasury.address } }],
      extensions: [],
      signers: {},
    },
    { nonsense: true },
  ];
  const late = stage.another({ facilitator: url, timeoutMs: atThisLoad(400) });
  for (const body of bodies) {
    spoil = async () => ({ status: 200, body });
    await expect(late.requirements(1n, null)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  }
  spoil = null;
  expect((await late.requirements(1n, null)).extra['feePayer']).toBe(operator.address);
});

/** Slots. */
const MINUTE = 151;

const supported = (feePayer: string, signers: readonly string[] = []) => ({
  status: 200,
  body: {
    kinds: [{ x402Version: 2, scheme: 'exact', network: DEVNET, extra: { feePayer } }],
    extensions: [],
    signers: { 'solana:*': signers },
  },
});

test('one that changes who pays the fee is asked again, and payments by its last terms are accepted', async () => {
  const next = await newPayer();
  stage.twin.fundSol(next.address);
  const late = stage.another({ facilitator: url });
  const before = await late.requirements(1_000n, null);
  expect(before.extra['feePayer']).toBe(operator.address);
  spoil = async () => supported(next.address);
  stage.twin.advance(MINUTE);
  // Another gateway knows the new one already, and gives terms.
  const others = await stage.another({ facilitator: url }).requirements(1_000n, null);
  expect(others.extra['feePayer']).toBe(next.address);
  for (const terms of [before, others])
    await expect(late.verify(late.read(await pay(stage.twin, await stage.payer(), terms)))).resolves.toBeDefined();
  // It does not answer: the last answer stands, for any time.
  for (const [status, minutes] of [
    [502, 1],
    [403, 11],
  ] as const) {
    spoil = async () => ({ status, body: { error: 'not now' } });
    stage.twin.advance(minutes * MINUTE);
    expect((await late.requirements(1_000n, null)).extra['feePayer']).toBe(next.address);
  }
});

test('nobody waits for one that hangs: its last answer serves meanwhile', async () => {
  const next = await newPayer();
  const late = stage.another({ facilitator: url, timeoutMs: 600_000 });
  const feePayer = async () => (await late.requirements(1_000n, null)).extra['feePayer'];
  expect(await feePayer()).toBe(operator.address);
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  spoil = async () => {
    asked += 1;
    await gate.promise;
    return supported(next.address);
  };
  stage.twin.advance(MINUTE);
  expect([await feePayer(), await feePayer()]).toEqual([operator.address, operator.address]);
  gate.resolve();
  await expect.poll(feePayer).toBe(next.address);
  expect(asked).toBe(1);
  // After ten minutes without a request the last answer is too old.
  spoil = async () => supported(operator.address);
  stage.twin.advance(11 * MINUTE);
  expect(await feePayer()).toBe(operator.address);
});

test('one that no longer settles on this network gives no terms, once it has said so', async () => {
  const late = stage.another({ facilitator: url });
  const terms = () => late.requirements(1_000n, null);
  await terms();
  spoil = async () => ({ status: 200, body: { kinds: [], extensions: [], signers: {} } });
  stage.twin.advance(MINUTE);
  await expect.poll(() => terms().catch(String)).toMatch(/ does not settle exact payments on /);
  spoil = null;
  expect((await terms()).extra['feePayer']).toBe(operator.address);
});

test('terms of another gateway, with another of the fee payers that it lists, are accepted', async () => {
  const second = await newPayer();
  const stranger = await newPayer();
  for (const one of [second, stranger]) stage.twin.fundSol(one.address);
  spoil = async () => supported(operator.address, [operator.address, second.address, stage.treasury.address]);
  const here = stage.another({ facilitator: url });
  const terms = await here.requirements(1_000n, null);
  const paid = async (feePayer: string) => {
    const accepted = { ...terms, extra: { ...terms.extra, feePayer } };
    return here.verify(here.read(await pay(stage.twin, await stage.payer(), accepted)));
  };
  await expect(paid(second.address)).resolves.toBeDefined();
  for (const other of [stranger, stage.treasury])
    await expect(paid(other.address)).rejects.toMatchObject({
      name: 'PaymentProblem',
      message: `The fee of a payment is now paid by ${operator.address}. Request the terms again, and sign a new payment`,
    });
});
