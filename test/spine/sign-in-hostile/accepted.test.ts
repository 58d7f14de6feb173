import { request } from 'node:http';
import bs58 from 'bs58';
import { createSiweMessage } from 'viem/siwe';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  encodeEnvelope,
  evmWallet,
  inSeconds,
  message,
  messageLines,
  presign,
  signInValue,
  solanaWallet,
  type MessageFields,
  type TestWallet,
} from '../../support/wallets.ts';
import { flatValue, type Fields } from './fields.ts';
import { shownId, shownOn, startWorld, type World } from './world.ts';

const NOW = inSeconds(0);

// Every way that a sign-in can be written: what honest clients send is taken, whichever of them they are.

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

const solana = solanaWallet();
const evm = evmWallet();
const wallets = [solana, evm];
const kind = (wallet: TestWallet) => (wallet === solana ? 'Solana' : 'EVM');

const whoSends = (value: string) => world.whoIs({ 'sign-in-with-x': value });

const LINES: readonly (readonly [name: string, fields: MessageFields])[] = [
  ['statement', { statement: 'I accept the terms: https://tollgate.test/terms' }],
  ['nonce', { nonce: 'abcdef0123456789' }],
  ['not before', { notBefore: inSeconds(-60) }],
  ['request id', { requestId: 'a/request-1~%20' }],
  [
    'resources',
    { resources: ['https://tollgate.test/a', 'ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/'] },
  ],
];
const COMBINATIONS = Array.from({ length: 2 ** LINES.length }, (_, bits) =>
  LINES.filter((_line, index) => (bits >> index) & 1),
);

describe.each(wallets.map((wallet) => [kind(wallet), wallet] as const))('a sign-in of %s', (_kind, wallet) => {
  it.each(COMBINATIONS.map((lines) => [lines.map(([name]) => name).join(', ') || 'no optional line', lines] as const))(
    'with %s',
    async (_name, lines) => {
      const fields: MessageFields = Object.assign({}, ...lines.map(([, field]) => field));
      expect(await whoSends(await signInValue(wallet, fields))).toBe(shownId(wallet));
    },
  );

  it.each([
    ['the time of issue alone', { expirationTime: null }],
    ['the end alone', { issuedAt: null }],
    ['an end in an hour', { issuedAt: NOW, expirationTime: new Date(Date.parse(NOW) + 3_600_000).toISOString() }],
    ['a clock that is a little ahead', { issuedAt: inSeconds(20) }],
    ['an end that has just passed', { issuedAt: inSeconds(-600), expirationTime: inSeconds(-10) }],
    ['times without fractions', { issuedAt: `${inSeconds(0).slice(0, 19)}Z` }],
    ['times to the nanosecond', { issuedAt: `${inSeconds(-1).slice(0, 19)}.123456789Z` }],
    ['an offset', { issuedAt: `${inSeconds(7200).slice(0, 19)}+02:00` }],
    ['an offset to the west', { issuedAt: `${inSeconds(-5400).slice(0, 19)}-01:30` }],
    ['a URI with a path and a question', { uri: 'https://tollgate.test/api/v1/chat/completions?beta=true#top' }],
    ['a URI without a slash', { uri: 'https://tollgate.test' }],
    ['a URI of http', { uri: 'http://tollgate.test/' }],
    ['a domain with a port', { domain: 'ports.test:9443' }],
    ['a statement beyond ASCII', { statement: 'Ich nehme die Bedingungen an, größte Sorgfalt ✓' }],
    ['an empty list of resources', { resources: [] }],
  ] as const satisfies readonly (readonly [string, MessageFields])[])('with %s', async (_name, fields) => {
    expect(await whoSends(await signInValue(wallet, fields))).toBe(shownId(wallet));
  });

  it('with two blank lines for a statement that is not there, as EIP-4361 has it', async () => {
    const lines = messageLines(wallet);
    expect(await whoSends(encodeEnvelope(await presign(wallet, lines.toSpliced(3, 0, '').join('\n'))))).toBe(
      shownId(wallet),
    );
  });

  it.each(
    wallet === solana
      ? [
          'mainnet',
          'devnet',
          'testnet',
          '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
          'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
          'solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z',
        ]
      : ['8453', '1', 'eip155:1', 'eip155:84532', '137', 'eip155:11155111'],
  )('on the chain %s', async (chainId) => {
    const cluster = {
      mainnet: '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      devnet: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
      testnet: '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z',
    };
    const reference = chainId.replace(/^\w+:/, '');
    const network = `${wallet.namespace}:${cluster[reference as keyof typeof cluster] ?? reference}`;
    expect(await whoSends(await signInValue(wallet, { chainId }))).toBe(shownOn(wallet, network));
  });

  it.each([
    ['base64', (value: string) => value],
    ['base64 without padding', (value: string) => value.replace(/=+$/, '')],
    ['base64url', (value: string) => Buffer.from(value, 'base64').toString('base64url')],
    ['base64url with padding', (value: string) => value.replaceAll('+', '-').replaceAll('/', '_')],
    ['base64 with spaces around it', (value: string) => `  ${value}  `],
  ])('in %s', async (_name, rewritten) => {
    // Letters that the two alphabets write differently.
    const value = await signInValue(wallet, { statement: 'ÿÿþ?>~ ¿¾ûï' });
    expect(value).toMatch(/[+/]/);
    expect(await whoSends(rewritten(value))).toBe(shownId(wallet));
  });

  it.each([['SIGN-IN-WITH-X'], ['Sign-In-With-X'], ['sign-in-with-x'], ['X-Sign-In-With-X'], ['X-SIWX'], ['x-siwx']])(
    'under the name %s',
    async (name) => {
      const value = await signInValue(wallet);
      expect(await rawWhoIs([name, value])).toBe(shownId(wallet));
    },
  );

  it('under two names with one value', async () => {
    const value = await signInValue(wallet);
    expect(await rawWhoIs(['SIGN-IN-WITH-X', value, 'X-SIWX', value])).toBe(shownId(wallet));
  });

  it.each([
    ['a dummy key', { authorization: 'Bearer siwx' }],
    ['a dummy x-api-key', { 'x-api-key': 'none' }],
    ['another scheme', { authorization: 'Basic dXNlcjpwYXNz' }],
  ])('beside %s', async (_name, headers) => {
    expect(await world.whoIs({ 'sign-in-with-x': await signInValue(wallet), ...headers })).toBe(shownId(wallet));
  });

  it('beside the key of another account, which it wins over', async () => {
    expect(
      await world.whoIs({ 'sign-in-with-x': await signInValue(wallet), authorization: `Bearer ${world.spine.key}` }),
    ).toBe(shownId(wallet));
  });

  it('in JSON that is indented, escaped and has more fields', async () => {
    const { message: text, signature } = await presign(wallet);
    const escaped = JSON.stringify({ extra: { a: [1] }, message: text, signature }, null, 2).replaceAll('w', '\\u0077');
    expect(await whoSends(Buffer.from(escaped).toString('base64'))).toBe(shownId(wallet));
  });

  it('again and again until it expires', async () => {
    const value = await signInValue(wallet);
    for (let times = 0; times < 3; times += 1) expect(await whoSends(value)).toBe(shownId(wallet));
  });

  it.each([
    ['as they are', {}],
    ['with a statement', { statement: 'Sign in to tollgate' }],
    [
      'with everything',
      {
        statement: 'All.',
        notBefore: inSeconds(-60),
        requestId: 'r-1',
        resources: ['https://tollgate.test/a', 'https://tollgate.test/b'],
      },
    ],
    ['without type', { type: undefined }],
    ['with the name of the scheme', { signatureScheme: wallet === solana ? 'siws' : 'eip191' }],
    ['without a nonce', { nonce: undefined }],
    ['without the time of issue', { issuedAt: undefined }],
    ['without the end', { expirationTime: undefined }],
    ['on another chain', { chainId: wallet === solana ? 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' : 'eip155:84532' }],
  ] as const satisfies readonly (readonly [string, unknown])[])('in flat fields %s', async (_name, changed) => {
    const shown = 'chainId' in changed ? shownOn(wallet, changed.chainId) : shownId(wallet);
    expect(await whoSends(await flatValue(wallet, changed as Partial<Fields>))).toBe(shown);
  });
});

describe('a sign-in of Solana', () => {
  it.each([
    ['base64', (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')],
    ['base64url', (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')],
    ['base64 without padding', (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replace(/=+$/, '')],
  ])('with its signature in %s', async (_name, encode) => {
    const { message: text, signature } = await presign(solana);
    expect(await whoSends(encodeEnvelope({ message: text, signature: encode(bs58.decode(signature)) }))).toBe(
      shownId(solana),
    );
  });
});

describe('a sign-in of EVM', () => {
  it('with its address in small letters', async () => {
    expect(await whoSends(await signInValue(evm, { address: evm.address.toLowerCase() }))).toBe(shownId(evm));
  });

  it.each([
    ['in capitals', (signature: string) => `0x${signature.slice(2).toUpperCase()}`],
    ['with v of 0 and 1', (signature: string) => signature.slice(0, -2) + (signature.endsWith('1b') ? '00' : '01')],
  ])('with its signature %s', async (_name, rewritten) => {
    const { message: text, signature } = await presign(evm);
    expect(await whoSends(encodeEnvelope({ message: text, signature: rewritten(signature) }))).toBe(shownId(evm));
  });

  it.each([
    ['without a statement', {}],
    ['with a statement', { statement: 'Sign in.' }],
    ['with resources', { resources: ['https://tollgate.test/'] }],
  ])('as viem writes it, %s', async (_name, more) => {
    const text = createSiweMessage({
      domain: 'tollgate.test',
      address: evm.address as `0x${string}`,
      uri: 'https://tollgate.test/login',
      version: '1',
      chainId: 8453,
      nonce: 'abcdef0123456789',
      issuedAt: new Date(),
      ...more,
    });
    expect(await whoSends(encodeEnvelope(await presign(evm, text)))).toBe(shownId(evm));
  });
});

it('an unfunded wallet has a balance of 0', async () => {
  for (const wallet of [solanaWallet(), evmWallet()]) {
    const response = await fetch(`${world.spine.url}/session/balance`, {
      headers: { 'sign-in-with-x': encodeEnvelope(await presign(wallet, message(wallet))) },
    });
    expect(await response.json()).toEqual({
      caip_account_id: shownId(wallet),
      balance_micro_usdc: 0,
      balance_usd: expect.any(String),
      locked_micro_usdc: 0,
    });
  }
});

/** As `whoIs`, with the names of the headers as they are written here. */
function rawWhoIs(headers: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    request(`${world.spine.url}/session/balance`, { headers: ['host', 'localhost', ...headers] }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => (body += part));
      response.on('end', () => resolve((JSON.parse(body) as { caip_account_id: string }).caip_account_id));
    })
      .on('error', reject)
      .end();
  });
}
