import { beforeAll, expect, test } from 'vitest';
import { createPaperChain, fromHeader, PAPER_LEAST, payWith, toHeader } from '../../support/paper-chain.ts';
import { ask, UNHURRIED } from '../../support/spine.ts';
import { AGENT, message, request, TOOLS, useRpcWorld, type RpcReply } from './rpc-world.ts';

// Payments go to the routes behind this one, and their terms and receipts come back. The chain is one on paper.

const chain = createPaperChain();
const world = useRpcWorld(UNHURRIED, { payments: chain.payments });
beforeAll(() => chain.credit(world.spine.app.ledger));

const strange = async (method: string, params: object, headers: Record<string, string> = {}) => {
  const response = await fetch(`${world.spine.url}/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(request(1, method, params)),
  });
  return { status: response.status, headers: response.headers, reply: (await response.json()) as RpcReply };
};

test('terms are in the data of the error and in the header, a payment in the header, and its receipt in both', async () => {
  const unpaid = await strange('chat/completions', ask('hello'));
  expect(unpaid.status).toBe(402);
  expect(unpaid.reply.error).toMatchObject({
    code: -32011,
    data: { type: 'insufficient_balance', x402Version: 2, accepts: [{ amount: String(PAPER_LEAST) }] },
  });
  expect(fromHeader(unpaid.headers.get('payment-required'))['accepts']).toEqual(unpaid.reply.error!.data!['accepts']);
  const paid = await strange('chat/completions', ask('hello'), {
    'payment-signature': toHeader(payWith({ wallet: 'a', nonce: 'header' })),
  });
  expect(paid.status).toBe(200);
  expect(fromHeader(paid.headers.get('payment-response'))).toMatchObject({ transaction: 'tx-header' });
  expect(paid.reply.result?._meta?.['x402/payment-response']).toMatchObject({ transaction: 'tx-header' });
});

test('a payment in _meta is the same, and twice is once', async () => {
  const params = { ...ask('in meta'), _meta: { 'x402/payment': payWith({ wallet: 'b', nonce: 'meta' }) } };
  const calls = world.spine.provider.log.length;
  const first = await strange('chat/completions', params);
  expect(first.reply.result?._meta?.['x402/payment-response'], JSON.stringify(first.reply)).toMatchObject({
    transaction: 'tx-meta',
  });
  const again = await strange('chat/completions', params);
  expect(again.reply.result).toEqual(first.reply.result);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(world.spine.provider.log.length).toBe(calls + 1);
});

test('a payment that is not known to be settled is an error, not a result', async () => {
  chain.unsettled.add('slow');
  const { status, reply } = await strange('chat/completions', {
    ...ask('slow'),
    _meta: { 'x402/payment': payWith({ wallet: 'c', nonce: 'slow' }) },
  });
  expect(status).toBe(200);
  expect(reply.error).toMatchObject({ code: -32019, data: { type: 'payment_pending', retry_after_s: 2, status: 202 } });
  chain.unsettled.delete('slow');
});

test('tools and agents take theirs as at their own doors', async () => {
  const tool = await strange('tools/call', {
    service: TOOLS,
    name: 'test_simple_text',
    arguments: {},
    _meta: { 'x402/payment': payWith({ wallet: 'd', nonce: 'tool' }) },
  });
  expect(tool.reply.result?._meta?.['x402/payment-response'], JSON.stringify(tool.reply)).toMatchObject({
    transaction: 'tx-tool',
  });
  const metadata = {
    'x402.payment.status': 'payment-submitted',
    'x402.payment.payload': payWith({ wallet: 'e', nonce: 'agent' }),
  };
  const agent = await strange('message/send', { agent: AGENT, message: { ...message('task hello'), metadata } });
  expect(agent.reply.result?.['metadata'], JSON.stringify(agent.reply)).toMatchObject({
    'x402.payment.receipts': [{ transaction: 'tx-agent' }],
  });
});

test('what is of an account stays closed to strangers, and so do batches of calls', async () => {
  for (const [method, params] of [
    ['account/balance', {}],
    ['tasks/get', { agent: AGENT, id: 'x' }],
    ['ListTasks', { agent: AGENT }],
    ['generation/get', { id: 'x' }],
  ] as const)
    expect((await strange(method, params)).reply.error, method).toMatchObject({ code: -32010 });
  const response = await fetch(`${world.spine.url}/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([request(1, 'chat/completions', ask('x'))]),
  });
  expect(response.status).toBe(401);
});
