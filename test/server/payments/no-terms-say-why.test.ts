import { expect, test } from 'vitest';
import { freshKey } from '../../support/chain/evm-token.ts';
import { ask, modelBlock } from '../../support/spine.ts';
import { fromHeader } from '../../support/paper-chain.ts';
import { spineOfFile } from '../../support/of-file.ts';

// A gateway whose only chain has not been reached yet.

const spine = spineOfFile(() => ({
  credit: '0',
  env: { TREASURY_KEY: Buffer.from(freshKey().secret).toString('hex') },
  toml: `${modelBlock({ name: 'test/dear', provider: 'Dear', url: '{provider}', completion: 10_000 })}
[[chains]]
network = "eip155:84532"
rpc_url = "http://127.0.0.1:9"
private_key = "std::env::TREASURY_KEY"
topup_max = 1
`,
}));

test.each([
  [
    'no chain answers',
    50,
    /^Insufficient balance for estimated cost: 0\.5\d* USDC\. The chains that can be paid over do not answer at the moment: retry later$/,
  ],
  [
    'the call may cost more than one payment can be',
    1_000,
    /^Insufficient balance for estimated cost: 10\.\d+ USDC\. One payment is at most 1 USDC: ask for less \(a lower max_tokens/,
  ],
])('a 402 without terms says what would be right where %s', async (_where, max_tokens, right) => {
  const answer = await fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ask('hello', { model: 'test/dear', max_tokens })),
  });
  expect(answer.status).toBe(402);
  const body = (await answer.json()) as { error: { message: string } };
  expect(body).toMatchObject({
    accepts: [],
    error: { type: 'insufficient_balance', message: expect.stringMatching(right) as string },
  });
  expect(fromHeader(answer.headers.get('payment-required'))).toMatchObject({ accepts: [], error: body.error.message });
});
