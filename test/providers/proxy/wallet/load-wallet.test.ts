import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import bs58 from 'bs58';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadWallet } from '../../../../src/providers/proxy/wallet/load-wallet.ts';
import { WalletError } from '../../../../src/providers/proxy/wallet/wallet.ts';
import { evmWallet, SOLANA_MAINNET, solanaWallet } from '../../../support/wallets.ts';

// Known to everyone: the first test vector of RFC 8032, and the first account of the development chain anvil.
const SEED = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex');
const PUBLIC = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex');
const SOLANA_ADDRESS = bs58.encode(PUBLIC);
const EVM_SECRET = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
const EVM_ADDRESS = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tollgate-wallet-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

let files = 0;
async function loadFile(chainId: string, content: string) {
  const keypairFile = join(dir, String((files += 1)));
  await writeFile(keypairFile, content, { mode: 0o600 });
  return loadWallet({ chainId, keypairFile });
}

const pair = Buffer.concat([SEED, PUBLIC]);
const array = JSON.stringify([...pair]);
const base58 = bs58.encode(pair);

describe('a wallet', () => {
  it('of Solana is read from a JSON array and from base58', async () => {
    const forms = [
      array,
      `${array}\n`,
      JSON.stringify([...pair], null, 2),
      base58,
      `${base58}\n`,
      JSON.stringify(base58),
    ];
    for (const form of forms) {
      for (const wallet of [
        await loadFile(SOLANA_MAINNET, form),
        await loadWallet({ chainId: SOLANA_MAINNET, privateKey: form }),
      ]) {
        expect(wallet).toMatchObject({
          namespace: 'solana',
          chainId: SOLANA_MAINNET,
          address: SOLANA_ADDRESS,
          accountId: `${SOLANA_MAINNET}:${SOLANA_ADDRESS}`,
          providerId: SOLANA_ADDRESS,
        });
      }
    }
  });

  it('of EVM is read from hex, with and without 0x', async () => {
    const forms = [
      EVM_SECRET,
      `${EVM_SECRET}\n`,
      EVM_SECRET.slice(2),
      `0x${EVM_SECRET.slice(2).toUpperCase()}`,
      JSON.stringify(EVM_SECRET),
    ];
    for (const form of forms) {
      for (const wallet of [
        await loadFile('eip155:8453', form),
        await loadWallet({ chainId: 'eip155:8453', privateKey: form }),
      ]) {
        expect(wallet).toMatchObject({
          namespace: 'eip155',
          chainId: 'eip155:8453',
          address: EVM_ADDRESS,
          accountId: `eip155:8453:${EVM_ADDRESS}`,
          providerId: EVM_ADDRESS.toLowerCase(),
        });
      }
    }
  });

  it('signs as RFC 8032 and EIP-191 say', async () => {
    const solana = await loadWallet({ chainId: SOLANA_MAINNET, privateKey: base58 });
    expect(Buffer.from(bs58.decode(await solana.sign(''))).toString('hex')).toBe(
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    );
    const evm = await loadWallet({ chainId: 'eip155:1', privateKey: EVM_SECRET });
    const { recoverMessageAddress } = await import('viem');
    for (const message of ['', 'hello', 'two\nlines', 'héllo €']) {
      const signature = await evm.sign(message);
      expect(signature).toMatch(/^0x[0-9a-f]{130}$/);
      expect(await recoverMessageAddress({ message, signature: signature as `0x${string}` })).toBe(EVM_ADDRESS);
    }
  });

  it('shows nothing of its key when it is printed', async () => {
    const wallets = [
      await loadWallet({ chainId: SOLANA_MAINNET, privateKey: base58 }),
      await loadWallet({ chainId: 'eip155:1', privateKey: EVM_SECRET }),
    ];
    for (const wallet of wallets) {
      const shown = inspect(wallet, { depth: 9, showHidden: true }) + JSON.stringify(wallet);
      for (const secret of [
        EVM_SECRET.slice(2),
        SEED.toString('hex'),
        base58,
        [...SEED].join(', '),
        [...SEED].join(','),
      ])
        expect(shown).not.toContain(secret);
    }
  });

  it('has a chain in CAIP-2, or a named cluster of Solana', async () => {
    const solana = async (chainId: string) => (await loadWallet({ chainId, privateKey: base58 })).chainId;
    expect(await solana('solana:mainnet')).toBe(SOLANA_MAINNET);
    expect(await solana('solana:devnet')).toBe('solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1');
    expect(await solana('solana:testnet')).toBe('solana:4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z');
    expect((await loadWallet({ chainId: 'eip155:84532', privateKey: EVM_SECRET })).chainId).toBe('eip155:84532');
    const wrong = ['', 'solana', 'eip155', 'base', '8453', ':8453', 'eip155:', 'eip155:0', 'eip155:08', 'eip155:-1', 'eip155:8453 ', 'eip155:1:0x00', 'EIP155:1', 'Solana:mainnet',
      'solana:', 'solana:mainnet-beta', 'solana:toString', 'solana:__proto__', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvd', 'cosmos:cosmoshub-3', 'eip155:1\n', EVM_SECRET, base58]; // prettier-ignore
    for (const chainId of wrong) {
      const error = await loadWallet({ chainId, privateKey: EVM_SECRET }).catch((reason: unknown) => reason);
      expect(error, chainId).toBeInstanceOf(WalletError);
      expect((error as Error).message, chainId).toContain('Give it as CAIP-2: eip155:<number>');
      expect((error as Error).message, chainId).not.toMatch(
        new RegExp(`${EVM_SECRET.slice(4, 40)}|${base58.slice(4, 40)}`),
      );
    }
  });
});

describe('a key that cannot be used is refused with what would be right, and without a part of it', () => {
  const other = solanaWallet();
  const mixed = Buffer.concat([SEED, other.secret.subarray(32)]);
  const solana = (content: string): [string, string] => ['solana:mainnet', content];
  const evm = (content: string): [string, string] => ['eip155:8453', content];
  const changed = (at: number, value: unknown) =>
    JSON.stringify([...pair].map((byte, index) => (index === at ? value : byte)));
  const cases: [name: string, input: [chainId: string, content: string], says: string][] = [
    [
      'halves of two pairs',
      solana(JSON.stringify([...mixed])),
      'holds a public key that does not match its secret key',
    ],
    [
      'halves of two pairs in base58',
      solana(bs58.encode(mixed)),
      'holds a public key that does not match its secret key',
    ],
    ['one flipped bit of the seed', solana(changed(5, pair[5]! ^ 1)), 'holds a public key that does not match'],
    ['one flipped bit of the public key', solana(changed(60, pair[60]! ^ 1)), 'holds a public key that does not match'],
    ['nothing', solana(''), 'a JSON array of 64 numbers'],
    ['63 numbers', solana(JSON.stringify([...pair.subarray(1)])), 'a JSON array of 64 numbers'],
    ['65 numbers', solana(JSON.stringify([...pair, 1])), 'a JSON array of 64 numbers'],
    ['the seed alone', solana(JSON.stringify([...SEED])), 'a JSON array of 64 numbers'],
    ['256', solana(changed(3, 256)), 'a JSON array of 64 numbers'],
    ['-1', solana(changed(3, -1)), 'a JSON array of 64 numbers'],
    ['a fraction', solana(changed(3, 0.5)), 'a JSON array of 64 numbers'],
    ['a text among the numbers', solana(changed(3, '7')), 'a JSON array of 64 numbers'],
    ['null among the numbers', solana(changed(3, null)), 'a JSON array of 64 numbers'],
    ['an object', solana('{"secretKey":[1]}'), 'a JSON array of 64 numbers'],
    ['broken JSON', solana(array.slice(0, -3)), 'a JSON array of 64 numbers'],
    ['base58 of 32 bytes', solana(bs58.encode(SEED)), 'a JSON array of 64 numbers'],
    ['base58 with a wrong letter', solana(`0${base58.slice(1)}`), 'a JSON array of 64 numbers'],
    ['60 KB of base58', solana('z'.repeat(60_000)), 'a JSON array of 64 numbers'],
    [
      'the key of an EVM account',
      solana(EVM_SECRET),
      'is one of EVM, but the chain id solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp is not',
    ],
    ['a Solana pair', evm(array), 'is one of Solana, but the chain id eip155:8453 is not'],
    ['a Solana pair in base58', evm(base58), 'is one of Solana'],
    ['nothing', evm(''), '32 bytes in hex'],
    ['0x alone', evm('0x'), '32 bytes in hex'],
    ['63 digits', evm(EVM_SECRET.slice(0, -1)), '32 bytes in hex'],
    ['65 digits', evm(`${EVM_SECRET}0`), '32 bytes in hex'],
    ['no hex', evm(`0x${'g'.repeat(64)}`), '32 bytes in hex'],
    ['two keys', evm(`${EVM_SECRET}\n${EVM_SECRET}`), '32 bytes in hex'],
    ['zero', evm(`0x${'0'.repeat(64)}`), 'no private key of an EVM account'],
    [
      'the order of the group',
      evm('0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141'),
      'no private key of an EVM account',
    ],
    ['the largest number', evm(`0x${'f'.repeat(64)}`), 'no private key of an EVM account'],
  ];
  it.each(cases)('%s', async (_name, [chainId, content], says) => {
    for (const attempt of [() => loadFile(chainId, content), () => loadWallet({ chainId, privateKey: content })]) {
      const error = (await attempt().catch((reason: unknown) => reason)) as Error;
      expect(error).toBeInstanceOf(WalletError);
      expect(error.message).toContain(says);
      const told = inspect(error, { depth: 9, showHidden: true });
      // Any run of the content that is long enough to be a part of a key.
      for (let at = 0; at + 12 <= Math.min(content.length, 300); at += 1)
        expect(told).not.toContain(content.slice(at, at + 12));
    }
  });

  it('and one that is given as the path of its file', async () => {
    for (const keypairFile of [EVM_SECRET, EVM_SECRET.slice(2), base58, array, ` ${array}\n`]) {
      const error = (await loadWallet({ chainId: 'solana:mainnet', keypairFile }).catch(
        (reason: unknown) => reason,
      )) as Error;
      expect(error.message).toContain('Give the path of a file');
      expect(inspect(error)).not.toContain(keypairFile.trim().slice(2, 14));
    }
  });

  it('the largest key that there is works', async () => {
    const largest = '0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140';
    expect((await loadWallet({ chainId: 'eip155:1', privateKey: largest })).address).toBe(
      evmWallet(Buffer.from(largest.slice(2), 'hex')).address,
    );
  });
});
