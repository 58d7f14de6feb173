import { afterAll, expect, test } from 'vitest';
import type { PaymentPayload } from '../../../src/billing/chains/chain.ts';
import { createEvmChain } from '../../../src/billing/chains/evm/evm-chain.ts';
import { freshKey } from '../../support/chain/evm-token.ts';

/*
 * A payment is read without asking anybody: what is malformed, or pays somebody else, is refused in words that say
 * what would be right.
 */

const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const NOW = Date.parse('2026-11-20T12:00:00Z');
const treasury = freshKey();
const chain = createEvmChain({
  network: 'eip155:84532',
  rpcUrl: 'http://127.0.0.1:9',
  asset: ASSET,
  assetName: 'USDC',
  assetVersion: '2',
  treasuryKey: treasury.secret,
  facilitator: 'in-process',
  finality: null,
  timeoutMs: 10_000,
  now: () => NOW,
});
afterAll(() => chain.close());

const FROM = '0x00000000000000000000000000000000000000AA';
const NONCE = `0x${'ab'.repeat(32)}`;
const authorization = {
  from: FROM,
  to: treasury.address,
  value: '1000000',
  validAfter: '0',
  validBefore: `${NOW / 1000 + 300}`,
  nonce: NONCE,
};
const signature = `0x${'11'.repeat(64)}1b`;
const requirements = await chain.requirements(1_000_000n, null);
const payment: PaymentPayload = { x402Version: 2, accepted: requirements, payload: { authorization, signature } };

test('requirements are those of x402 v2 with EIP-3009, paid before the work', () => {
  expect(requirements).toEqual({
    scheme: 'exact',
    network: 'eip155:84532',
    asset: ASSET,
    amount: '1000000',
    payTo: treasury.address,
    maxTimeoutSeconds: 300,
    extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009', paymentFlow: 'upfront' },
  });
});

test('a payment is read, whatever case its addresses are in, and without what is not needed to submit it', () => {
  const read = chain.read({ ...payment, payload: { ...payment.payload, more: 'x'.repeat(10_000) } });
  expect(read).toEqual({
    id: `eip155:84532/${ASSET.toLowerCase()}/${FROM.toLowerCase()}/${NONCE}`,
    network: 'eip155:84532',
    payerAccount: `eip155:${FROM.toLowerCase()}`,
    payer: FROM,
    amount: 1_000_000n,
    requirements,
    payload: { authorization, signature },
  });
  const shouted = {
    ...payment,
    accepted: {
      ...requirements,
      asset: ASSET.toLowerCase(),
      payTo: treasury.address.toLowerCase(),
      maxTimeoutSeconds: 60,
    },
    payload: {
      authorization: {
        ...authorization,
        from: FROM.toLowerCase(),
        to: treasury.address.toLowerCase(),
        nonce: `0x${'AB'.repeat(32)}`,
      },
      signature,
    },
  };
  expect(chain.read(shouted)).toEqual(read);
});

const accepted = (change: object): PaymentPayload => ({ ...payment, accepted: { ...requirements, ...change } });
const authorized = (change: object) => ({
  ...payment,
  payload: { authorization: { ...authorization, ...change }, signature },
});
const signed = (value: unknown) => ({ ...payment, payload: { authorization, signature: value } });

const refused: readonly (readonly [string, unknown, string, string?])[] = [
  ['another version', { ...payment, x402Version: 1 }, 'x402Version must be 2, not 1'],
  ['nothing accepted', { ...payment, accepted: null }, 'accepted must be an object, not null'],
  [
    'another scheme',
    accepted({ scheme: 'upto' }),
    'accepted.scheme must be "exact", not "upto"',
    'payment_verification_failed',
  ],
  [
    'another network',
    accepted({ network: 'eip155:8453' }),
    'accepted.network must be "eip155:84532", not "eip155:8453"',
    'payment_verification_failed',
  ],
  [
    'another asset',
    accepted({ asset: FROM }),
    `accepted.asset must be ${ASSET}, not "${FROM}"`,
    'payment_verification_failed',
  ],
  [
    'another receiver accepted',
    accepted({ payTo: FROM }),
    `accepted.payTo must be ${treasury.address}, not "${FROM}"`,
    'payment_verification_failed',
  ],
  [
    'no amount',
    accepted({ amount: undefined }),
    'accepted.amount must be a whole number as a string of digits, not missing',
  ],
  [
    'an amount that is a number',
    accepted({ amount: 1_000_000 }),
    'accepted.amount must be a whole number as a string of digits, not 1000000',
  ],
  ['an amount in hex', accepted({ amount: '0xf4240' }), 'accepted.amount must be a whole number'],
  ['an amount below nothing', accepted({ amount: '-1' }), 'accepted.amount must be a whole number'],
  ['an amount of nothing', accepted({ amount: '0' }), 'accepted.amount must be between 1 and'],
  ['an amount beyond reason', accepted({ amount: '99999999999999999999' }), 'accepted.amount must be between 1 and'],
  [
    'another domain name',
    accepted({ extra: { name: 'USD Coin', version: '2' } }),
    'accepted.extra.name must be "USDC", not "USD Coin"',
    'payment_verification_failed',
  ],
  [
    'another domain version',
    accepted({ extra: { name: 'USDC', version: 2 } }),
    'accepted.extra.version must be "2", not 2',
  ],
  ['no extra', accepted({ extra: undefined }), 'accepted.extra must be an object, not missing'],
  [
    'Permit2 accepted',
    accepted({ extra: { ...requirements.extra, assetTransferMethod: 'permit2' } }),
    'assetTransferMethod must be "eip3009", not "permit2"',
    'payment_verification_failed',
  ],
  ['Permit2', { ...payment, payload: { permit2Authorization: {}, signature } }, 'Permit2 is not supported'],
  ['no payload', { ...payment, payload: [] }, 'payload must be an object, not a list'],
  ['no authorization', { ...payment, payload: { signature } }, 'payload.authorization must be an object, not missing'],
  ['no signature', signed(undefined), 'payload.signature must be 65 to 4096 bytes of hex after 0x'],
  ['a short signature', signed(`0x${'11'.repeat(64)}`), 'payload.signature must be 65 to 4096 bytes'],
  ['half a byte', signed(`${signature}1`), 'payload.signature must be 65 to 4096 bytes'],
  ['a signature without end', signed(`0x${'11'.repeat(5000)}`), 'payload.signature must be 65 to 4096 bytes'],
  ['a signature that is no hex', signed(`0x${'zz'.repeat(65)}`), 'payload.signature must be 65 to 4096 bytes'],
  ['a wallet that is not deployed', signed(`0x${'11'.repeat(100)}${'6492'.repeat(16)}`), 'not deployed yet (ERC-6492)'],
  [
    'a payer that is no address',
    authorized({ from: '0x12' }),
    'payload.authorization.from must be 20 bytes of hex after 0x, not "0x12"',
  ],
  ['nobody as payer', authorized({ from: `0x${'00'.repeat(20)}` }), 'from is the zero address'],
  ['the treasury as payer', authorized({ from: treasury.address }), 'from is the recipient itself'],
  [
    'another receiver',
    authorized({ to: FROM }),
    `payload.authorization.to must be ${treasury.address}`,
    'payment_verification_failed',
  ],
  [
    'less than was accepted',
    authorized({ value: '999999' }),
    'payload.authorization.value is 999999; the accepted amount is 1000000',
    'insufficient_payment',
  ],
  [
    'more than was accepted',
    authorized({ value: '1000001' }),
    'value must be the accepted amount 1000000, not 1000001',
  ],
  ['a value with a point', authorized({ value: '1000000.0' }), 'payload.authorization.value must be a whole number'],
  [
    'a start that is no number',
    authorized({ validAfter: 'now' }),
    'payload.authorization.validAfter must be a whole number',
  ],
  [
    'an end before its start',
    authorized({ validAfter: `${NOW / 1000 + 300}` }),
    'validBefore must be later than validAfter',
  ],
  [
    'an end far away',
    authorized({ validBefore: `${NOW / 1000 + 90_000}` }),
    'validBefore must be at most 86400 seconds away',
  ],
  [
    'a short nonce',
    authorized({ nonce: '0x12' }),
    'payload.authorization.nonce must be 32 bytes of hex after 0x, not "0x12"',
  ],
  [
    'a nonce that is an object',
    authorized({ nonce: { length: 66 } }),
    'payload.authorization.nonce must be 32 bytes of hex after 0x, not an object',
  ],
];

test.each(refused.map(([what, bad, words, code = 'invalid_request']) => [what, bad, words, code] as const))(
  'refused: %s',
  (_what, bad, words, code) => {
    expect(() => chain.read(bad as PaymentPayload)).toThrow(
      expect.objectContaining({ name: 'PaymentProblem', code, message: expect.stringContaining(words) }),
    );
  },
);

test('what a stranger wrote comes back short', () => {
  const long = accepted({ network: 'x'.repeat(100_000) });
  expect(() => chain.read(long)).toThrow(expect.objectContaining({ message: expect.stringMatching(/^.{1,250}$/) }));
});

test.each([
  ['0x036CbD53842c5426634e7929541eC2318f3dCF7f', 'checksum (EIP-55)'],
  ['0x036cbd53842c5426634e7929541ec2318f3dcf7', '20 bytes of hex'],
  ['vitalik.eth', '20 bytes of hex'],
  [`0x${'00'.repeat(20)}`, 'is the zero address'],
  [treasury.address, 'is the treasury itself'],
  [ASSET.toLowerCase(), 'is the contract of the asset'],
])('nothing is paid out to %s', (address, words) => {
  expect(chain.addressFault(address)).toContain(words);
});

test('an address may be in one case, or have the capitals of its checksum', () => {
  const { address } = freshKey();
  for (const right of [address, address.toLowerCase(), `0x${address.slice(2).toUpperCase()}`])
    expect(chain.addressFault(right)).toBeNull();
});
