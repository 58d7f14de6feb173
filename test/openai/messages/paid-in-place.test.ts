import Anthropic from '@anthropic-ai/sdk';
import { beforeAll, expect, test } from 'vitest';
import { requestOf, WIRES } from '../../peers/wires.ts';
import { createPaperChain, fromHeader, PAPER_LEAST, payWith, toHeader } from '../../support/paper-chain.ts';
import { MODEL } from '../../support/spine.ts';
import { spineOfFile } from '../../support/of-file.ts';

// A call by a chat wire that is paid for with the request itself. The chain is one on paper.

const chain = createPaperChain();
const spine = spineOfFile(() => {
  const toml = '[limits]\nrequests_per_minute = 1000000\nanonymous_requests_per_minute = 1000000\n';
  return { toml, payments: chain.payments };
});
beforeAll(() => {
  chain.credit(spine.app.ledger);
});

const body = { model: MODEL, max_tokens: 20, messages: [{ role: 'user' as const, content: 'hello' }] };

test.each([
  ...WIRES.map((wire) => {
    const { path, body } = requestOf(wire, { model: MODEL, ...wire.ask('hello', 20) });
    return [wire.name, path, body, wire.noun] as const;
  }),
  [
    'responses in the background',
    '/api/v1/responses',
    { model: MODEL, max_output_tokens: 20, input: 'hello', background: true },
    'A response',
  ],
] as const)(
  '%s tell a wallet without an account the terms, and answer when it pays',
  async (name, path, asked, noun) => {
    const headers = { 'content-type': 'application/json' };
    const post = (more: object) =>
      fetch(`${spine.origin}${path}`, {
        method: 'POST',
        headers: { ...headers, ...more },
        body: JSON.stringify(asked),
      });
    const refused = await post({});
    expect(refused.status).toBe(402);
    const terms = fromHeader(refused.headers.get('payment-required')) as {
      accepts: { amount: string }[];
      resource: { url: string; description: string };
    };
    expect(terms.accepts.map(({ amount }) => amount)).toEqual([String(PAPER_LEAST)]);
    // A name in an address has its slash encoded.
    expect(decodeURIComponent(terms.resource.url)).toBe(`${spine.origin}${path}`);
    expect(terms.resource.description).toMatch(new RegExp(`^${noun} by ${MODEL}`));
    expect(await refused.json()).toMatchObject({ x402Version: 2, accepts: terms.accepts });

    const paid = await post({ 'payment-signature': toHeader(payWith({ wallet: `alice-of-${name}` })) });
    expect(paid.status, await paid.clone().text()).toBe(200);
    expect(paid.headers.get('payment-response')).not.toBeNull();
  },
);

test('a client that is refused for want of money does not ask again', async () => {
  const { key } = await spine.tenant('poor', '0.000001');
  const client = new Anthropic({ baseURL: `${spine.origin}/api`, apiKey: key, maxRetries: 3 });
  const before = spine.logs.length;
  await expect(client.messages.create(body)).rejects.toMatchObject({ status: 402, type: 'billing_error' });
  // The line of a call may come after its answer.
  const refusals = () => spine.logs.slice(before).filter((line) => line.includes('"status":402'));
  await expect.poll(refusals).toHaveLength(1);
});
