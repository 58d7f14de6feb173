import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  inSeconds,
  solanaWallet,
  evmWallet,
  signInValue,
  type MessageFields,
  type TestWallet,
} from '../../support/wallets.ts';
import { flatValue } from './fields.ts';
import { startWorld, type World } from './world.ts';

// What is sensitive takes a sign-in with a nonce of the gateway, once. Creating a key stands for it here.

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const wallets = [
  ['Solana', solanaWallet()],
  ['EVM', evmWallet()],
] as const;

async function nonce(): Promise<string> {
  const response = await fetch(`${world.spine.url}/auth/nonce`);
  return ((await response.json()) as { nonce: string }).nonce;
}
async function createKey(
  value: string,
): Promise<{ status: number; body: { key?: string; error?: { type: string; message: string } } }> {
  const response = await fetch(`${world.spine.url}/keys`, {
    method: 'POST',
    headers: { 'sign-in-with-x': value, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'made by a wallet' }),
  });
  return { status: response.status, body: (await response.json()) as { key?: string } };
}
const refused = { status: 401, body: { error: expect.objectContaining({ type: 'unauthorized', code: 401 }) } };
const keysOf = async (wallet: TestWallet) => {
  const response = await fetch(`${world.spine.url}/keys`, { headers: { 'sign-in-with-x': await signInValue(wallet) } });
  return ((await response.json()) as { data: readonly unknown[] }).data.length;
};

describe.each(wallets)('a key is made by a wallet of %s', (_kind, wallet) => {
  it('with a nonce of the gateway, once', async () => {
    const value = await signInValue(wallet, { nonce: await nonce() });
    const before = await keysOf(wallet);
    const { status, body } = await createKey(value);
    expect(status).toBe(201);
    expect(await world.whoIs({ authorization: `Bearer ${body.key!}` })).toBe(
      await world.whoIs({ 'sign-in-with-x': value }),
    );
    for (let times = 0; times < 3; times += 1) expect(await createKey(value)).toEqual(refused);
    expect(await keysOf(wallet)).toBe(before + 1);
  });

  it('with flat fields', async () => {
    const value = await flatValue(wallet, { nonce: await nonce() });
    expect((await createKey(value)).status).toBe(201);
    expect(await createKey(value)).toEqual(refused);
  });

  it('once, of many requests at the same moment', async () => {
    const value = await signInValue(wallet, { nonce: await nonce() });
    const answers = await Promise.all(Array.from({ length: 32 }, () => createKey(value)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(31);
  });

  it('once, whatever else the message says and however it is written', async () => {
    const one = await nonce();
    expect((await createKey(await signInValue(wallet, { nonce: one }))).status).toBe(201);
    const again: readonly string[] = [
      await signInValue(wallet, { nonce: one }),
      await signInValue(wallet, { nonce: one, statement: 'Another message.' }),
      await signInValue(wallet, { nonce: one, issuedAt: inSeconds(5) }),
      (await signInValue(wallet, { nonce: one })).replace(/=+$/, ''),
      await flatValue(wallet, { nonce: one }),
      await signInValue(wallets[0][1], { nonce: one }),
      await signInValue(wallets[1][1], { nonce: one }),
    ];
    for (const value of again) expect(await createKey(value)).toEqual(refused);
  });

  it.each([
    ['without a nonce', async () => ({})],
    ['with a nonce of its own', async () => ({ nonce: 'abcdef0123456789' })],
    ['with 32 letters of its own', async () => ({ nonce: 'A'.repeat(43) })],
    ['with a letter of the nonce changed', async () => ({ nonce: changed(await nonce(), 0) })],
    ['with its middle changed', async () => ({ nonce: changed(await nonce(), 20) })],
    ['with its last letter changed', async () => ({ nonce: changed(await nonce(), -1) })],
    ['with a letter more', async () => ({ nonce: `${await nonce()}1` })],
    ['with a 1 before it', async () => ({ nonce: `1${await nonce()}` })],
    ['with a letter less', async () => ({ nonce: (await nonce()).slice(0, -1) })],
    ['with two nonces as one', async () => ({ nonce: (await nonce()) + (await nonce()) })],
    ['with the nonce in other letters', async () => ({ nonce: (await nonce()).toLowerCase() })],
    ['with the nonce as request id', async () => ({ requestId: await nonce() })],
    ['with the nonce in the statement', async () => ({ statement: `Nonce: ${await nonce()}` })],
  ] as const satisfies readonly (readonly [string, () => Promise<MessageFields>])[])(
    'and not %s',
    async (_name, fields) => {
      const before = await keysOf(wallet);
      expect(await createKey(await signInValue(wallet, await fields()))).toEqual(refused);
      expect(await keysOf(wallet)).toBe(before);
    },
  );

  it('and a sign-in that is refused does not use the nonce up', async () => {
    const one = await nonce();
    expect(await createKey(await signInValue(wallet, { nonce: one, domain: 'evil.example' }))).toEqual(refused);
    expect(
      await createKey(
        await signInValue(wallet, { nonce: one, expirationTime: inSeconds(-100), issuedAt: inSeconds(-200) }),
      ),
    ).toEqual(refused);
    expect((await createKey(await signInValue(wallet, { nonce: one }))).status).toBe(201);
  });
});

it('every nonce is another', async () => {
  const nonces = await Promise.all(Array.from({ length: 50 }, nonce));
  expect(new Set(nonces).size).toBe(50);
  for (const one of nonces) expect(one).toMatch(/^[A-Za-z0-9]{8,}$/);
});

function changed(text: string, at: number): string {
  const index = at < 0 ? text.length + at : at;
  return text.slice(0, index) + (text[index] === '2' ? '3' : '2') + text.slice(index + 1);
}
