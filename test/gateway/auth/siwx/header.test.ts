import { describe, expect, it } from 'vitest';
import { createSiweMessage } from 'viem/siwe';
import { decodeSignIn, readSignIn } from '../../../../src/gateway/auth/siwx/header.ts';
import { refuseRepeatedCredentials } from '../../../../src/gateway/auth/credential.ts';
import {
  BASE,
  DOMAIN,
  encode,
  evmWallet,
  fieldsFor,
  headerFor,
  headerOf,
  iso,
  SOLANA_MAINNET,
  solanaWallet,
  START,
  textOf,
  type TestWallet,
} from './wallets.ts';
import { openSignIn } from './sign-in-world.ts';

const unauthorized = { code: 'unauthorized', headers: { 'www-authenticate': 'SIWx, Bearer' } };
const solana = solanaWallet();
const evm = evmWallet();

describe('the sign-in header', () => {
  it('is read under each of its names, and under several with one value', () => {
    for (const name of ['sign-in-with-x', 'x-sign-in-with-x', 'x-siwx'])
      expect(readSignIn({ [name]: ' abc ' })).toBe('abc');
    expect(readSignIn({ 'sign-in-with-x': 'abc', 'x-siwx': 'abc' })).toBe('abc');
    expect(readSignIn({ authorization: 'Bearer x' })).toBeNull();
    expect(readSignIn({ 'x-siwx': '' })).toBe('');
  });

  it('is refused where two names hold two values, or one is sent twice', () => {
    expect(() => readSignIn({ 'sign-in-with-x': 'abc', 'x-siwx': 'abd' })).toThrow('two values');
    for (const name of ['SIGN-IN-WITH-X', 'X-Sign-In-With-X', 'x-siwx', 'Authorization', 'X-API-Key']) {
      expect(() => refuseRepeatedCredentials([name, 'a', 'Host', 'x', name.toLowerCase(), 'a'])).toThrow(
        'more than once',
      );
      expect(() => refuseRepeatedCredentials([name, 'a', 'Host', 'x'])).not.toThrow();
    }
    expect(() =>
      refuseRepeatedCredentials([
        'sign-in-with-x',
        'a',
        'x-siwx',
        'a',
        'x-sign-in-with-x',
        'a',
        'authorization',
        'a',
        'x-api-key',
        'a',
      ]),
    ).not.toThrow();
  });

  it('is base64 or base64url, padded or not', async () => {
    const { enter } = await openSignIn();
    const text = textOf(fieldsFor(solana, { statement: 'ÿþ>?~ so that both alphabets differ' }));
    const json = Buffer.from(
      JSON.stringify({ message: text, signature: await solana.sign(text), other: '>>>???~~~ÿÿÿ' }),
    );
    const forms = [json.toString('base64'), json.toString('base64url'), json.toString('base64').replace(/=+$/, '')];
    expect(new Set(forms).size).toBeGreaterThan(1);
    for (const form of forms) expect((await enter(form)).account).toBe(solana.account);
  });

  it.each([
    ['nothing', ''],
    ['no base64', '{"message":"x"}'],
    ['two values joined', `${encode({ message: 'x', signature: 'y' })}, ${encode({ message: 'x', signature: 'y' })}`],
    ['no JSON', Buffer.from('no JSON').toString('base64')],
    ['a JSON number', encode(1)],
    ['JSON null', encode(null)],
    ['a JSON list', encode([{ message: 'x', signature: 'y' }])],
    ['no signature', encode({ message: 'x' })],
    ['an empty signature', encode({ message: 'x', signature: '' })],
    ['a signature that is no text', encode({ message: 'x', signature: [1, 2] })],
    ['a message that is no text', encode({ message: { a: 1 }, signature: 'y' })],
    ['a message that is null', encode({ message: null, signature: 'y' })],
    ['neither message nor fields', encode({ signature: 'y' })],
    ['nested objects', Buffer.from('['.repeat(3_000)).toString('base64')],
    ['too much', 'A'.repeat(8_193)],
    [
      'bytes that are no UTF-8',
      Buffer.concat([
        Buffer.from('{"message":"'),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('","signature":"x"}'),
      ]).toString('base64'),
    ],
  ])('is refused with %s', async (_what, value) => {
    const { enter } = await openSignIn();
    await expect(enter(value)).rejects.toMatchObject(unauthorized);
  });
});

/**
 * The flat fields that a client of the x402 extension sends, and the signature over the text that its libraries
 * make of them.
 */
async function flat(wallet: TestWallet, text: string, changes: Record<string, unknown> = {}): Promise<string> {
  const fields = {
    domain: DOMAIN,
    address: wallet.address,
    uri: `https://${DOMAIN}/api/v1/chat/completions`,
    version: '1',
    chainId: wallet.namespace === 'solana' ? SOLANA_MAINNET : BASE,
    type: wallet.namespace === 'solana' ? 'ed25519' : 'eip191',
    nonce: 'a1b2c3d4e5f67890',
    issuedAt: iso(START),
    ...changes,
  };
  return encode({ ...fields, signature: await wallet.sign(text) });
}

describe('the flat form of the x402 extension', () => {
  const siwe = {
    address: evm.address as `0x${string}`,
    chainId: 8453,
    domain: DOMAIN,
    nonce: 'a1b2c3d4e5f67890',
    uri: `https://${DOMAIN}/api/v1/chat/completions`,
    version: '1',
  } as const;
  const siws = (lines: readonly string[], tail: readonly string[] = []) =>
    [
      `${DOMAIN} wants you to sign in with your Solana account:`,
      solana.address,
      '',
      ...lines,
      `URI: https://${DOMAIN}/api/v1/chat/completions`,
      'Version: 1',
      'Chain ID: 5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      'Nonce: a1b2c3d4e5f67890',
      `Issued At: ${iso(START)}`,
      ...tail,
    ].join('\n');

  it('is rebuilt on EVM as EIP-4361 lays it out', async () => {
    const { enter } = await openSignIn();
    const plain = createSiweMessage({ ...siwe, issuedAt: new Date(START) });
    expect((await enter(await flat(evm, plain))).account).toBe(evm.account);
    const full = createSiweMessage({
      ...siwe,
      issuedAt: new Date(START),
      statement: 'Sign in to read.',
      expirationTime: new Date(START + 60_000),
      notBefore: new Date(START - 60_000),
      requestId: 'request-1',
      resources: ['https://gateway.example/a', 'https://gateway.example/b'],
    });
    const fields = {
      statement: 'Sign in to read.',
      expirationTime: iso(START + 60_000),
      notBefore: iso(START - 60_000),
      requestId: 'request-1',
      resources: ['https://gateway.example/a', 'https://gateway.example/b'],
      signatureScheme: 'eip191',
    };
    expect(await enter(await flat(evm, full, fields))).toMatchObject({
      account: evm.account,
      wallet: { nonce: 'a1b2c3d4e5f67890' },
    });
    expect(
      (
        await enter(
          await flat(evm, createSiweMessage({ ...siwe, issuedAt: new Date(START), resources: [] }), { resources: [] }),
        )
      ).account,
    ).toBe(evm.account);
  });

  it('is rebuilt on Solana with the bare reference of the chain', async () => {
    const { enter } = await openSignIn();
    expect((await enter(await flat(solana, siws([])))).account).toBe(solana.account);
    expect((await enter(await flat(solana, siws([]), { resources: [], statement: null }))).account).toBe(
      solana.account,
    );
    const full = siws(
      ['Sign in to read.', ''],
      [`Expiration Time: ${iso(START + 60_000)}`, 'Request ID: r1', 'Resources:', '- https://gateway.example/a'],
    );
    const fields = {
      statement: 'Sign in to read.',
      expirationTime: iso(START + 60_000),
      requestId: 'r1',
      resources: ['https://gateway.example/a'],
      signatureScheme: 'siws',
    };
    expect((await enter(await flat(solana, full, fields))).account).toBe(solana.account);
  });

  it('counts for what was signed: no field can be changed, added or left out', async () => {
    const { enter } = await openSignIn();
    const changes: Record<string, unknown>[] = [
      { domain: 'localhost:8402' },
      { address: solanaWallet('mallory').address },
      { uri: `https://${DOMAIN}/other` },
      { chainId: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' },
      { nonce: 'a1b2c3d4e5f67891' },
      { nonce: null },
      { issuedAt: iso(START + 1) },
      { expirationTime: iso(START + 60_000) },
      { notBefore: iso(START) },
      { requestId: 'x' },
      { statement: 'x' },
      { resources: ['https://gateway.example/'] },
    ];
    for (const change of changes)
      await expect(enter(await flat(solana, siws([]), change)), JSON.stringify(change)).rejects.toMatchObject(
        unauthorized,
      );
  });

  it.each(
    Object.entries({
      'a missing domain': { domain: undefined },
      'a missing address': { address: undefined },
      'a missing URI': { uri: undefined },
      'a missing version': { version: undefined },
      'a missing chain': { chainId: undefined },
      'a chain that is a number': { chainId: 8453 },
      'a chain of another kind': { chainId: 'cosmos:cosmoshub-4' },
      'a chain without namespace': { chainId: '8453' },
      'a chain named __proto__': { chainId: '__proto__:1' },
      'a type of another chain': { type: 'eip191' },
      'a scheme of another chain': { signatureScheme: 'eip1271' },
      'a scheme that is not a text': { signatureScheme: {} },
      'a line feed in a field': { statement: 'x\n\nURI: https://gateway.example/' },
      'a line feed in a resource': { resources: ['https://gateway.example/\n- https://gateway.example/'] },
      'resources that are no list': { resources: 'https://gateway.example/' },
      'resources that are no texts': { resources: [1] },
      'a number for a time': { issuedAt: START },
    }),
  )('is refused with %s', async (_what, change) => {
    const { enter } = await openSignIn();
    await expect(enter(await flat(solana, siws([]), change))).rejects.toMatchObject(unauthorized);
  });

  it('has no field that is more than its line, though the text is what was signed', async () => {
    const { enter } = await openSignIn();
    const resources = ['Resources:', '- https://gateway.example/a', '- https://gateway.example/b'];
    const split = siws([], resources);
    expect(
      (
        await enter(
          await flat(solana, split, { resources: ['https://gateway.example/a', 'https://gateway.example/b'] }),
        )
      ).account,
    ).toBe(solana.account);
    await expect(
      enter(await flat(solana, split, { resources: ['https://gateway.example/a\n- https://gateway.example/b'] })),
    ).rejects.toMatchObject(unauthorized);
    const joined = { nonce: `a1b2c3d4e5f67890\nIssued At: ${iso(START)}`, issuedAt: null };
    await expect(enter(await flat(solana, siws([]), joined))).rejects.toMatchObject(unauthorized);
  });
});

it('counts the text as it was received', async () => {
  const { enter } = await openSignIn();
  const text = textOf(fieldsFor(evm));
  const signature = await evm.sign(text);
  for (const message of [
    `${text}\n`,
    text.replace('Sign in.', 'Sign in!'),
    text.replace(evm.address, evm.address.toLowerCase()),
    text.normalize('NFD').replace('Z', 'z'),
  ])
    await expect(enter(encode({ message, signature }))).rejects.toMatchObject(unauthorized);
  expect((await enter(encode({ message: text, signature, address: 'ignored', chainId: 1 }))).account).toBe(evm.account);
  expect(decodeSignIn(await headerFor(evm)).text).toBe(text);
});

it('is refused with the signature of somebody else, or of another message', async () => {
  const { enter } = await openSignIn();
  for (const [one, other] of [
    [solana, solanaWallet('mallory')],
    [evm, evmWallet('mallory')],
  ] as const) {
    const text = textOf(fieldsFor(one));
    await expect(enter(encode({ message: text, signature: await other.sign(text) }))).rejects.toMatchObject(
      unauthorized,
    );
    await expect(
      enter(encode({ message: text, signature: await one.sign(text.replace('Sign', 'sign')) })),
    ).rejects.toMatchObject(unauthorized);
    expect((await enter(await headerOf(one, text))).account).toBe(one.account);
  }
});
