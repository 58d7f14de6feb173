import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { accountOf, createPaperChain, PAPER_LEAST, payWith, type PaperPayment } from '../../support/paper-chain.ts';
import { saying, type Asked } from '../clients/sdk-client.ts';
import type { Json } from '../contract/shapes.ts';
import { createTalk, type Reply, type ProviderStream } from '../contract/client-calls.ts';
import { heldBy, LEGACY_RPC, refusalOf, REST, RPC, useCallsWorld, WIRES, type Wire } from './support/calls-world.ts';

// What the A2A route does with a payment. The chain is one on paper; payments on real ones are tested where these are.

const chain = createPaperChain();
const calls = useCallsWorld('', { payments: chain.payments });
beforeAll(() => chain.credit(calls.world.spine.app.ledger));

const X402_URI = 'https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2';
/** A client without a credential. */
const strange = (url: string, wire: Wire = RPC, headers: Record<string, string> = {}): ProviderStream =>
  createTalk({ url: `${url}${wire.below}`, headers }, wire.version, wire.binding);
const paying = (payment: PaperPayment): Json => ({
  'x402.payment.status': 'payment-submitted',
  'x402.payment.payload': payWith(payment),
});
const name = (wire: Wire, what: string) => `${what}-${wire.name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}`;
const balanceOf = async (wallet: string) =>
  (await calls.world.spine.app.ledger.balance(escrowOf(accountOf(wallet))))?.available ?? null;
const stateOf = (reply: Reply) => String((heldBy(reply)['status'] as Json)['state']).toLowerCase();
const statusMetadata = (reply: Reply): Json =>
  ((heldBy(reply)['status'] as Json)['message'] as Json)['metadata'] as Json;

let agents: { readonly received: readonly { readonly body: string }[] }[] = [];
const serve = async () => {
  const served = await calls.serve({ version: 'both' });
  agents.push(served.agent);
  return served;
};
const sends = (text: string) =>
  agents.flatMap(({ received }) => received).filter(({ body }) => body.includes(`"${text}"`)).length;
afterEach(() => {
  // Neither a payment nor what says that it is one reaches an agent.
  for (const { received } of agents) expect(JSON.stringify(received)).not.toMatch(/x402|paper-canary/);
  agents = [];
  expect(calls.world.spine.logs.join('\n')).not.toContain('paper-canary');
});

test.each(WIRES)(
  'a stranger is told the terms, pays the task that waits, and its task is the wallet’s: $name',
  async (wire) => {
    const { url } = await serve();
    const talk = strange(url, wire, { 'a2a-extensions': X402_URI, 'x-a2a-extensions': X402_URI });
    const unpaid = await talk.sent('task work', { message: { messageId: 'm-1' } });
    expect(stateOf(unpaid)).toMatch(/input[-_]required/);
    expect(statusMetadata(unpaid)).toMatchObject({
      'x402.payment.status': 'payment-required',
      'x402.payment.required': { x402Version: 2, accepts: [{ amount: String(PAPER_LEAST) }] },
    });
    expect(unpaid.headers.get('a2a-extensions')).toBe(X402_URI);
    const { id, contextId } = heldBy(unpaid);
    expect(sends('task work')).toBe(0);

    const wallet = name(wire, 'payer');
    const message = {
      messageId: 'm-2',
      taskId: id,
      contextId,
      metadata: { ...paying({ wallet, nonce: wallet }), mine: 1 },
    };
    const done = await talk.sent('task work', { message });
    expect(stateOf(done), done.text).toMatch(/completed/);
    const receipts = [
      { success: true, transaction: `tx-${wallet}`, network: 'paper:1', payer: wallet, amount: String(PAPER_LEAST) },
    ];
    expect(heldBy(done)['metadata']).toMatchObject({
      'x402.payment.status': 'payment-completed',
      'x402.payment.receipts': receipts,
    });
    expect(heldBy(done)['id']).not.toBe(id);
    expect(await balanceOf(wallet)).toBe(PAPER_LEAST - 1_000n);
    expect(sends('task work')).toBe(1);

    // The same again is the same answer, whatever the message is called this time; another one with this payment is
    // none.
    const again = await talk.sent('task work', { message: { ...message, messageId: 'm-3' } });
    expect(heldBy(again)['id']).toBe(heldBy(done)['id']);
    const other = await talk.sent('task other', { message });
    expect(statusMetadata(other)).toMatchObject({
      'x402.payment.status': 'payment-failed',
      'x402.payment.error': 'INVALID_SIGNATURE',
    });
    expect(sends('task work')).toBe(1);
    expect(sends('task other')).toBe(0);

    // Nobody reads the task without saying who asks, and another account does not have it.
    expect((await talk.call('GetTask', { id: String(heldBy(done)['id']) })).status).toBe(401);
    expect(refusalOf(await calls.talk(url, wire).call('GetTask', { id: String(heldBy(done)['id']) }))?.code).toBe(
      -32_001,
    );
    // Nor goes on with it.
    const into = await talk.sent('task mine', { message: { messageId: 'm-4', taskId: heldBy(done)['id'] } });
    expect(refusalOf(into)?.code).toBe(-32_001);
  },
);

test.each([RPC, LEGACY_RPC])(
  'a stream tells of the payment in its first event, and in its last: $name',
  async (wire) => {
    const { url } = await serve();
    const wallet = name(wire, 'streamer');
    const metadata = paying({ wallet, nonce: wallet });
    const stream = await strange(url, wire).stream('task streamed', { message: { messageId: 's-1', metadata } });
    const events = await stream.rest();
    expect(events.length).toBeGreaterThan(1);
    const told = stream.wire.map(({ data }) => data).filter((data) => data.includes(`tx-${wallet}`));
    expect(stream.wire[0]!.data).toContain('payment-completed');
    expect(stream.wire.at(-1)!.data).toContain(`tx-${wallet}`);
    expect(told.length).toBeGreaterThanOrEqual(2);
    expect(sends('task streamed')).toBe(1);
  },
);

test('a payment that is no good can be followed by a good one', async () => {
  const { url } = await serve();
  const talk = strange(url);
  const expired = await talk.sent('task late', {
    message: { messageId: 'l-1', metadata: paying({ wallet: 'late', fault: 'expired' }) },
  });
  expect(statusMetadata(expired)).toMatchObject({
    'x402.payment.status': 'payment-failed',
    'x402.payment.error': 'EXPIRED_PAYMENT',
    'x402.payment.receipts': [{ success: false, transaction: '', network: 'paper:1' }],
    'x402.payment.required': { accepts: [{}] },
  });
  const small = await talk.sent('task late', {
    message: { messageId: 'l-1', metadata: paying({ wallet: 'late', amount: 1n }) },
  });
  expect(statusMetadata(small)).toMatchObject({ 'x402.payment.error': 'INVALID_AMOUNT' });
  const { id, contextId } = heldBy(small);
  // Whatever wallet pays in the end.
  const metadata = paying({ wallet: 'early' });
  const done = await talk.sent('task late', { message: { messageId: 'l-1', taskId: id, contextId, metadata } });
  expect(stateOf(done), done.text).toMatch(/completed/);
  const rejected = await talk.sent('task late', {
    message: { messageId: 'l-2', metadata: { 'x402.payment.status': 'payment-rejected' } },
  });
  expect(statusMetadata(rejected)).toMatchObject({ 'x402.payment.status': 'payment-required' });
  const malformed = await talk.sent('x', {
    message: { messageId: 'l-3', metadata: { 'x402.payment.payload': { x402Version: 2 } } },
  });
  expect(refusalOf(malformed)).toMatchObject({
    code: -32_602,
    message: expect.stringMatching(/x402\.payment\.payload.*must be an object/) as string,
  });
  expect(sends('task late')).toBe(1);
});

test.each([RPC, REST])(
  'a payment that is not known to be settled is an error that says to repeat: $name',
  async (wire) => {
    const { url } = await serve();
    const nonce = name(wire, 'slow');
    chain.unsettled.add(nonce);
    const message = { messageId: 'p-1', metadata: paying({ wallet: nonce, nonce }) };
    const pending = await strange(url, wire).sent('task slow', { message });
    expect(pending.text).toMatch(/PAYMENT_PENDING/);
    expect(pending.text).not.toContain('accepts');
    expect(pending.headers.get('retry-after')).toBe('2');
    chain.unsettled.delete(nonce);
    expect(stateOf(await strange(url, wire).sent('task slow', { message }))).toMatch(/completed/);
    expect(sends('task slow')).toBe(1);
  },
);

test('a task that fails after its payment is free, and leaves the balance', async () => {
  const { url } = await serve();
  const metadata = paying({ wallet: 'failed', nonce: 'failed' });
  const reply = await strange(url).sent('fail', { message: { messageId: 'f-1', metadata } });
  expect(stateOf(reply)).toMatch(/failed/);
  expect(statusMetadata(reply)).toMatchObject({ 'x402.payment.status': 'payment-completed' });
  expect(await balanceOf('failed')).toBe(PAPER_LEAST);
});

test('an account with a key pays in place what its balance does not reach for, and its task is its own', async () => {
  const { url } = await serve();
  const { spine } = calls.world;
  const { key, account } = await spine.tenant('keyed', '0.0004');
  const talk = calls.talk(url, RPC, key);
  const unpaid = await talk.sent('task keyed', { message: { messageId: 'k-1' } });
  const { id, contextId } = heldBy(unpaid);
  const metadata = paying({ wallet: 'anyone', nonce: 'keyed' });
  const done = await talk.sent('task keyed', { message: { messageId: 'k-1', taskId: id, contextId, metadata } });
  expect(stateOf(done), done.text).toMatch(/completed/);
  expect((await spine.app.ledger.balance(escrowOf(account)))?.available).toBe(400n + PAPER_LEAST - 1_000n);
  expect((await talk.get(String(heldBy(done)['id']))).state).toBe('completed');
});

test('a model that is asked as an agent is paid for in place, by a message and by a stream', async () => {
  const { spine } = calls.world;
  const url = `${spine.origin}/a2a/model/test/model`;
  const talk = strange(url);
  const metadata = paying({ wallet: 'bridge', nonce: 'bridge' });
  const message = { messageId: 'b-1', metadata };
  const reply = await talk.sent('hello', { message });
  expect(heldBy(reply)['metadata'], reply.text).toMatchObject({
    'x402.payment.receipts': [{ transaction: 'tx-bridge' }],
  });
  expect(heldBy(await talk.sent('hello', { message }))).toEqual(heldBy(reply));
  const stream = await talk.stream('hello', {
    message: { messageId: 'b-2', metadata: paying({ wallet: 'bridge', nonce: 'bridge-2' }) },
  });
  await stream.rest();
  expect(stream.wire[0]!.data).toContain('tx-bridge-2');
  expect(JSON.stringify(spine.provider.log.map(({ text }) => text))).not.toContain('paper-canary');
});

test('a real client pays, by what the card and the task tell', async () => {
  const { url } = await serve();
  const card = (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as {
    capabilities: { extensions: { uri: string }[] };
  };
  expect(card.capabilities.extensions.map(({ uri }) => uri)).toContain(X402_URI);
  const client = await new ClientFactory(ClientFactoryOptions.default).createFromUrl(`${url}/`);
  const say = async (text: string, asked: Asked, metadata: Json) => {
    const request = saying(text, asked);
    const message = { ...request.message!, metadata };
    return (await client.sendMessage({ ...request, message })) as unknown as {
      readonly id: string;
      readonly contextId: string;
      readonly metadata: Json;
      readonly status: { readonly message: { readonly metadata: Json } };
    };
  };
  const { id, contextId, status } = await say('task real', {}, {});
  expect(status.message.metadata['x402.payment.status']).toBe('payment-required');
  const done = await say('task real', { taskId: id, contextId }, paying({ wallet: 'sdk', nonce: 'sdk' }));
  expect(done.metadata['x402.payment.receipts']).toMatchObject([{ transaction: 'tx-sdk' }]);
});
