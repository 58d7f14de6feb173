import { afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { accountOf, createPaperChain, fromHeader, PAPER_LEAST, payWith, toHeader } from '../support/paper-chain.ts';
import { imageBlock, type Images, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// Images for wallets without an account: x402. The chain is one on paper.

const chain = createPaperChain();
const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const limits = '[limits]\nrequests_per_minute = 1000000\nanonymous_requests_per_minute = 1000000\n';
  return {
    toml: limits + imageBlock({ url: provider.url, generation: 3 }),
    payments: chain.payments,
  };
});
beforeAll(() => {
  chain.credit(spine.app.ledger);
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(spine.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const ask = (n: number) => ({ model: 'test/paint', prompt: 'A tollgate', n });

test.each(['/image/generate', '/images/generations'])('%s tells its terms, is paid and answers', async (path) => {
  const unpaid = await post(path, ask(1));
  expect(unpaid.status).toBe(402);
  const required = fromHeader(unpaid.headers.get('payment-required'));
  const terms = (await unpaid.json()) as {
    accepts: { amount: string }[];
    resource: { url: string; description: string };
  };
  expect(terms.accepts[0]!.amount).toBe('3000000');
  expect(terms.resource).toMatchObject({
    url: spine.url + path,
    description: 'An image by test/paint, at most 3 USDC more',
  });
  expect(required['accepts']).toEqual(terms.accepts);
  const wallet = `painter ${path}`;
  const signed = { 'payment-signature': toHeader(payWith({ wallet, amount: 3_000_000n, nonce: path })) };
  const asked = provider.requests.length;
  const paid = await post(path, ask(1), signed);
  expect(paid.status).toBe(200);
  expect(fromHeader(paid.headers.get('payment-response'))).toMatchObject({ success: true, payer: wallet });
  expect((await spine.app.ledger.balance(escrowOf(accountOf(wallet))))?.available).toBe(0n);
  const again = await post(path, ask(1), signed);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(((await again.json()) as Pick<Images, 'usage'>).usage.cost).toBe(3);
  expect(provider.requests.length).toBe(asked + 1);
});

test('a payment that is too small is told so, with the door’s own error', async () => {
  const signed = { 'payment-signature': toHeader(payWith({ wallet: 'short', amount: PAPER_LEAST, nonce: 'short' })) };
  const response = await post('/image/generate', ask(2), signed);
  expect(response.status).toBe(402);
  expect(await response.json()).toMatchObject({ error: { code: 'insufficient_payment' }, x402Version: 2 });
});
