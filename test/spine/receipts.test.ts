import { createPublicKey, verify } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { ask, events, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// A receipt of every paid call: verifiable with nothing but the gateway's public key, and the same wherever it is
// shown.

const spine = spineOfFile(() => ({ toml: `${UNHURRIED}\n[billing]\nfee_bps = 100` }));
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

interface Content {
  readonly id: string;
  readonly account: string;
  readonly provider: string;
  readonly primitive: string;
  readonly price: string;
  readonly lock: string;
  readonly usage: { readonly prompt: number; readonly completion: number };
  readonly charged: string;
  readonly fee: string;
  readonly time: number;
}

/**
 * As somebody does who has the receipt and the published key, and no gateway. Null when the signature does not hold.
 */
async function read(receipt: string): Promise<Content | null> {
  const { keys } = (await (await fetch(`${spine.origin}/.well-known/jwks.json`)).json()) as {
    keys: { kid: string; kty: string; crv: string; x: string }[];
  };
  const [head, payload, signature] = receipt.split('.') as [string, string, string];
  const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as { alg: string; kid: string };
  expect(header.alg).toBe('EdDSA');
  const jwk = keys.find(({ kid }) => kid === header.kid)!;
  const holds = verify(
    null,
    Buffer.from(`${head}.${payload}`),
    createPublicKey({ key: jwk, format: 'jwk' }),
    Buffer.from(signature, 'base64url'),
  );
  return holds ? (JSON.parse(Buffer.from(payload, 'base64url').toString()) as Content) : null;
}

const ASK_FOR_IT = { 'x-receipt': '1' };

test.each([false, true])('says what was charged, for what, to whom (stream: %s)', async (stream) => {
  const response = await spine.post('/chat/completions', ask('hello !tokens:9', { stream }), ASK_FOR_IT);
  const text = await response.text();
  const receipt = stream
    ? (events(text).at(-2) as { usage: { cost_details: { receipt: string } } }).usage.cost_details.receipt
    : response.headers.get('x-receipt')!;
  const content = (await read(receipt))!;
  const call = spine.provider.log.at(-1)!;
  const charged = call.promptTokens + 18;
  const offer = spine.app.catalog.offers()[0]!;
  expect(content).toMatchObject({
    id: response.headers.get('x-generation-id'),
    account: spine.account,
    provider: offer.provider.id,
    primitive: 'model',
    price: offer.price.id,
    usage: { prompt: call.promptTokens, completion: 9 },
    charged: String(charged),
  });
  // 1 %, rounded up or down by the call's id.
  expect([Math.floor(charged / 100), Math.ceil(charged / 100)]).toContain(Number(content.fee));
  expect(BigInt(content.lock)).toBeGreaterThan(BigInt(charged));
  expect(Math.abs(content.time - Date.now())).toBeLessThan(60_000);

  // The same call's record has the same receipt, to the byte.
  expect((await spine.generation(content.id)).receipt).toBe(receipt);
});

test('every settled call has one in its record, asked for or not; one that was not charged because it failed has none', async () => {
  const response = await spine.post('/chat/completions', ask('hello !tokens:2'));
  await response.text();
  expect(await read((await spine.generation(response.headers.get('x-generation-id'))).receipt!)).not.toBeNull();
  const known = await spine.locks();
  expect((await spine.post('/chat/completions', ask('hello !status:400'))).status).toBe(400);
  const failed = (await spine.locks()).find((id) => !known.includes(id))!;
  expect((await spine.generation(failed)).receipt).toBeNull();
});

test('a receipt that was changed in any place does not hold', async () => {
  const response = await spine.post('/chat/completions', ask('hello'), ASK_FOR_IT);
  await response.text();
  const receipt = response.headers.get('x-receipt')!;
  const [head, payload, signature] = receipt.split('.') as [string, string, string];
  const content = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Content;
  const cheaper = Buffer.from(JSON.stringify({ ...content, charged: '1' })).toString('base64url');
  expect(await read(`${head}.${cheaper}.${signature}`)).toBeNull();
  const bytes = Buffer.from(signature, 'base64url');
  bytes[7]! ^= 1;
  expect(await read(`${head}.${payload}.${bytes.toString('base64url')}`)).toBeNull();
});

test('a header cannot be made to say anything else', async () => {
  const response = await spine.post('/chat/completions', ask('hello'), { 'x-receipt': 'forged' });
  await response.text();
  expect(response.headers.get('x-receipt')).toBeNull();
});
