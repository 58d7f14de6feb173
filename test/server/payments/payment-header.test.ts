import { expect, test } from 'vitest';
import { GatewayError } from '#errors';
import { paymentHeader, paymentKey, paymentOf, readPayment } from '#payments';
import { payWith, toHeader } from '../../support/paper-chain.ts';

const PAYMENT = payWith({ wallet: 'w', nonce: 'n' });
const read = (headers: Record<string, string>) => readPayment(headers, () => 'digest');

test('a payment is read by either name, in both alphabets of base64, and is of the request that it came with', () => {
  const header = toHeader(PAYMENT);
  for (const name of ['payment-signature', 'x-payment'])
    for (const value of [header, ` ${header} `, Buffer.from(JSON.stringify(PAYMENT)).toString('base64url')])
      expect(read({ [name]: value })).toEqual({ payload: PAYMENT, request: 'digest', receipt: null });
  expect(read({ 'payment-signature': header, 'x-payment': header })).toMatchObject({ payload: PAYMENT });
  let asked = false;
  expect(readPayment({ authorization: 'Bearer x' }, () => String((asked = true)))).toBeNull();
  expect(asked).toBe(false);
});

const NESTED = `${'{"a":'.repeat(20)}1${'}'.repeat(20)}`;

test.each([
  ['no base64', '{"x402Version":2}', /PAYMENT-SIGNATURE must be base64/],
  ['sent twice', `${toHeader(PAYMENT)}, ${toHeader(PAYMENT)}`, /sent once/],
  ['empty', '', /PAYMENT-SIGNATURE must be base64/],
  ['no JSON', Buffer.from('hello').toString('base64'), /contains no valid JSON/],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('base64'), /contains no valid JSON/],
  ['too deep', Buffer.from(NESTED).toString('base64'), /contains no valid JSON/],
  [
    'too wide',
    toHeader({ ...PAYMENT, payload: Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, 1])) }),
    /contains no valid JSON/,
  ],
  ['too long', toHeader({ ...PAYMENT, more: 'x'.repeat(20_000) }), /longer than 16384/],
  ['a list', toHeader([PAYMENT]), /must be the PaymentPayload of x402 version 2/],
  ['null', toHeader(null), /must be the PaymentPayload/],
  ['version 1', toHeader({ ...PAYMENT, x402Version: 1 }), /x402Version must be 2/],
  ['no payload', toHeader({ ...PAYMENT, payload: undefined }), /payload must be an object/],
  ['a payload that is a list', toHeader({ ...PAYMENT, payload: [] }), /payload must be an object/],
  ['what was accepted is missing', toHeader({ ...PAYMENT, accepted: 'x' }), /accepted must be an object/],
])('a header that is wrong is refused with what is right: %s', (_name, value, message) => {
  try {
    read({ 'payment-signature': value });
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    const { code, param, message: said } = error as GatewayError;
    expect({ code, param }).toEqual({ code: 'invalid_request', param: 'payment-signature' });
    expect(said).toMatch(message);
    expect(said.length).toBeLessThan(300);
  }
});

test('two headers with two payments are refused', () => {
  const other = toHeader(payWith({ wallet: 'w', nonce: 'other' }));
  expect(() => read({ 'payment-signature': toHeader(PAYMENT), 'x-payment': other })).toThrow(/Two payment headers/);
});

test('keys of prototypes are plain members', () => {
  const text = '{"x402Version":2,"accepted":{},"payload":{"__proto__":{"polluted":true}}}';
  const slip = read({ 'payment-signature': Buffer.from(text).toString('base64') })!;
  expect(Object.hasOwn(slip.payload['payload'] as object, '__proto__')).toBe(true);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('the key of a payment is that of its deposit, or else of what it says, in whatever order', () => {
  const { x402Version, accepted, payload } = PAYMENT;
  const slip = (value: unknown) => paymentOf(value, 'here', () => '');
  const one = paymentKey(slip({ x402Version, accepted, payload }));
  expect(
    paymentKey(slip({ payload, accepted: Object.fromEntries(Object.entries(accepted).toReversed()), x402Version })),
  ).toBe(one);
  expect(paymentKey(slip(payWith({ wallet: 'w', nonce: 'another' })))).not.toBe(one);
  expect(one).toMatch(/^payment [0-9a-f]{64}$/);
  const known = (value: unknown) => paymentKey({ ...slip(value), id: 'deposit-1' });
  expect(known(PAYMENT)).toBe(known({ ...PAYMENT, more: 'a member that the chain does not see' }));
});

test('what goes out is base64 of JSON that any client reads', () => {
  const receipt = { success: true, transaction: 'tx', network: 'paper:1', payer: 'wället', amount: '1' } as const;
  const header = paymentHeader(receipt);
  expect(header).toMatch(/^[A-Za-z0-9+/]+=*$/);
  expect(JSON.parse(Buffer.from(header, 'base64').toString())).toEqual(receipt);
});
