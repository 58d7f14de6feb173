import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Chain, PaymentPayload } from '../../../src/billing/chains/chain.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';

/*
 * With a facilitator that is somebody else's, only the chain says what was paid.
 */

type Answer = (body: {
  paymentPayload: PaymentPayload;
}) => Promise<{ readonly status?: number; readonly body: unknown } | 'hang' | 'reset'>;

let world: EvmWorld;
let chain: Chain;
/** For answers that do not come. */
let hasty: Chain;
let answer: Answer;
let asked: { readonly path: string; readonly body: Record<string, unknown> }[] = [];

const server = createServer((request, response) => {
  void (async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { paymentPayload: PaymentPayload };
    asked.push({ path: request.url!, body: body });
    const reply = await answer(body);
    if (reply === 'hang') return;
    if (reply === 'reset') return void response.destroy();
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', 'extension-responses': 'e30=' });
    response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
  })();
});

/** A facilitator that does its work, by a gateway of its own. */
const honest: Answer = async ({ paymentPayload }) => {
  const payment = world.chain.read(paymentPayload);
  try {
    const { transaction } = await world.mined(world.chain.submit(payment));
    return { body: { success: true, transaction, network: payment.network, payer: payment.payer } };
  } catch {
    return {
      body: {
        success: false,
        errorReason: 'invalid_exact_evm_payload_signature',
        transaction: '',
        network: payment.network,
      },
    };
  }
};

beforeAll(async () => {
  world = await startEvmWorld();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const facilitator = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x402/`);
  chain = world.chainWith({ facilitator });
  hasty = world.chainWith({ facilitator, timeoutMs: 300 });
});
beforeEach(() => {
  answer = honest;
  asked = [];
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await world.stop();
});

test('it settles and is shown nothing before, and the chain is asked whether it did', async () => {
  const payer = await world.payer();
  const payment = await world.payment(payer);
  expect(await chain.verify(payment)).toEqual({ account: `eip155:${payer.address.toLowerCase()}` });
  expect(asked).toEqual([]);
  const { transaction } = await world.mined(chain.submit(payment));
  expect(await chain.find(payment, transaction)).toMatchObject({ state: 'settled', event: { transaction } });
  expect(asked.map(({ path }) => path)).toEqual(['/x402/settle']);
  const paymentPayload = { x402Version: 2, accepted: payment.requirements, payload: payment.payload };
  expect(asked[0]!.body).toEqual({ x402Version: 2, paymentPayload, paymentRequirements: payment.requirements });
  expect(await world.mined(chain.submit(payment))).toEqual({ transaction: null });
});

test('what is no good is refused before it is shown to anybody, and what it refuses is refused', async () => {
  const payment = await world.payment(await world.payer(1n));
  await expect(chain.verify(payment)).rejects.toMatchObject({
    name: 'PaymentProblem',
    code: 'payment_verification_failed',
  });
  expect(asked).toEqual([]);
  await expect(chain.submit(payment)).rejects.toMatchObject({
    name: 'PaymentProblem',
    message: expect.stringContaining('The facilitator refuses the payment'),
  });
});

test('a success that is a lie is open', async () => {
  const payment = await world.payment(await world.payer());
  answer = async () => ({ body: { success: true, transaction: `0x${'12'.repeat(32)}`, network: payment.network } });
  const { transaction } = await chain.submit(payment);
  expect(await chain.find(payment, transaction)).toEqual({ state: 'open' });
  answer = async () => ({ body: { success: true, transaction: 'done', network: payment.network } });
  expect(await chain.submit(payment)).toEqual({ transaction: null });
});

const unknown: readonly (readonly [string, Answer])[] = [
  ['is too slow', async () => 'hang'],
  ['hangs up', async () => 'reset'],
  ['fails', async () => ({ status: 500, body: { success: false } })],
  ['is busy', async () => ({ status: 429, body: { success: false } })],
  ['answers no JSON', async () => ({ body: '<html>' })],
  ['answers nothing that can be used', async () => ({ body: { success: 'yes' } })],
  ['answers a list', async () => ({ body: [true] })],
  ['answers without end', async () => ({ body: { success: true, more: 'x'.repeat(100_000) } })],
];
test.each(unknown)('where it %s, nothing is known', async (_what, badly) => {
  const payment = await world.payment(await world.payer());
  answer = badly;
  await expect(hasty.submit(payment)).rejects.toMatchObject({ name: 'ChainUnavailable' });
});

test('a failure that may have come after the broadcast is unknown, and found', async () => {
  const payment = await world.payment(await world.payer());
  answer = async (body) => {
    await honest(body);
    return { body: { success: false, errorReason: 'transaction_failed', transaction: '', network: payment.network } };
  };
  await expect(chain.submit(payment)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: 'The facilitator did not settle the payment: transaction_failed',
  });
  expect(await chain.find(payment, null)).toMatchObject({ state: 'settled' });
});

test('a settlement that is pending names its transaction', async () => {
  const payment = await world.payment(await world.payer());
  const transaction = `0x${'34'.repeat(32)}`;
  answer = async () => ({
    body: { success: false, errorReason: 'settlement_pending', transaction, network: payment.network },
  });
  expect(await chain.submit(payment)).toEqual({ transaction });
});
