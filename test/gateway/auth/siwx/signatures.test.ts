import bs58 from 'bs58';
import * as fc from 'fast-check';
import nacl from 'tweetnacl';
import { recoverMessageAddress } from 'viem';
import { describe, expect, it } from 'vitest';
import {
  loadRecovery,
  nativeRecovery,
  recoverSigner,
  viemRecovery,
  type Recover,
  solanaKey,
  verifySolanaSignature,
  verifyWalletSignature,
} from '../../../../src/gateway/auth/siwx/wallet-signature.ts';
import { parseEvmAddress } from '../../../../src/server/config/evm-address.ts';
import { evmWallet, solanaKeypair, solanaWallet } from './wallets.ts';
import { anyCharacter } from '../../../support/any-character.ts';
import { checkedWith } from '../../../support/checked-with.ts';

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 2_000 : 12;
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const anyText = fc.string({ unit: anyCharacter, maxLength: 300 }).filter((text) => text.isWellFormed());
const seeds = fc.nat(1_000_000).map(String);

const littleEndian = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
const toLittleEndian = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();

/** The 14 encodings of points of small order, from the curve's arithmetic as its authors list them. */
const SMALL_ORDER = [
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
].map((hex) => Buffer.from(hex, 'hex'));

describe('a signature of Solana', () => {
  it('is good when tweetnacl made it and says so, and no other is', () => {
    fc.assert(
      fc.property(seeds, anyText, fc.nat(63), fc.integer({ min: 1, max: 255 }), (seed, text, at, flip) => {
        const { publicKey, secretKey } = solanaKeypair(seed);
        const address = bs58.encode(publicKey);
        const signature = nacl.sign.detached(Buffer.from(text), secretKey);
        expect(verifySolanaSignature(address, text, bs58.encode(signature))).toBe(true);
        expect(verifySolanaSignature(address, `${text} `, bs58.encode(signature))).toBe(false);
        const broken = Uint8Array.from(signature, (byte, index) => (index === at ? byte ^ flip : byte));
        expect(verifySolanaSignature(address, text, bs58.encode(broken))).toBe(false);
        expect(nacl.sign.detached.verify(Buffer.from(text), broken, publicKey)).toBe(false);
      }),
      { numRuns: RUNS },
    );
  });

  it('may be in base58 or base64, padded or not, and in nothing else', async () => {
    const { address } = solanaWallet();
    const signature = Buffer.from(nacl.sign.detached(Buffer.from('text'), solanaKeypair('alice').secretKey));
    for (const form of [bs58.encode(signature), signature.toString('base64'), signature.toString('base64url')]) {
      expect(verifySolanaSignature(address, 'text', form)).toBe(true);
    }
    const base58 = bs58.encode(signature);
    for (const form of [
      signature.toString('hex'),
      `0x${signature.toString('hex')}`,
      ` ${base58}`,
      `${base58}\n`,
      `1${base58}`,
      base58.slice(1),
      '',
      'O',
      '1'.repeat(7_000),
    ]) {
      expect(verifySolanaSignature(address, 'text', form)).toBe(false);
    }
  });

  it('is not good with its second half enlarged by the order of the curve, which tweetnacl takes', () => {
    const { publicKey, secretKey } = solanaKeypair('alice');
    const signature = nacl.sign.detached(Buffer.from('text'), secretKey);
    for (let times = 1n; littleEndian(signature.subarray(32)) + times * ED25519_ORDER < 2n ** 256n; times += 1n) {
      const malleated = Buffer.concat([
        signature.subarray(0, 32),
        toLittleEndian(littleEndian(signature.subarray(32)) + times * ED25519_ORDER),
      ]);
      if (times === 1n) expect(nacl.sign.detached.verify(Buffer.from('text'), malleated, publicKey)).toBe(true);
      expect(verifySolanaSignature(bs58.encode(publicKey), 'text', bs58.encode(malleated))).toBe(false);
    }
  });

  it('cannot be forged for a key of small order, though the libraries take it', () => {
    // S = 0 and R a point of small order: the equation S·B = R + h·A holds for some text, whoever "signs".
    let taken = 0;
    for (const key of SMALL_ORDER) {
      const address = bs58.encode(key);
      expect(solanaKey(address)).toBeNull();
      for (const point of SMALL_ORDER) {
        const forged = Buffer.concat([point, Buffer.alloc(32)]);
        for (let nonce = 0; nonce < 16; nonce += 1) {
          expect(verifySolanaSignature(address, `text ${nonce}`, bs58.encode(forged))).toBe(false);
          // tweetnacl takes 8 ms.
          if (taken === 0 && nacl.sign.detached.verify(Buffer.from(`text ${nonce}`), forged, key)) taken += 1;
        }
      }
    }
    expect(taken).toBeGreaterThan(0);
  });

  it('is not good under a second encoding of a key', () => {
    for (let more = 0; more < 19; more += 1) {
      const key = toLittleEndian(2n ** 255n - 19n + BigInt(more));
      expect(solanaKey(bs58.encode(key))).toBeNull();
      key[31]! |= 0x80;
      expect(solanaKey(bs58.encode(key))).toBeNull();
    }
    const last = toLittleEndian(2n ** 255n - 19n - 2n);
    expect(solanaKey(bs58.encode(last))).not.toBeNull();
  });

  it('is not good with the neutral point for its first half, which tweetnacl takes', () => {
    // What a signer with a broken nonce of 0 would make: R is the neutral point, S = h·a.
    const { publicKey, secretKey } = solanaKeypair('alice');
    expect(
      verifySolanaSignature(
        bs58.encode(publicKey),
        'text',
        bs58.encode(Buffer.concat([SMALL_ORDER[2]!, neutralS(publicKey, secretKey, 'text')])),
      ),
    ).toBe(false);
  });
});

checkedWith('secp256k1', '5.0.2');

describe('a signature of EVM', () => {
  const tools: [string, () => Promise<Recover | null>][] = [
    ['the native addon', async () => nativeRecovery()],
    ['viem', viemRecovery],
  ];

  it('is recovered natively where the addon is installed', async () => {
    expect(await loadRecovery()).toBe(await loadRecovery());
    expect(nativeRecovery()).not.toBeNull();
  });

  it('has the signer that viem finds', async () => {
    await fc.assert(
      fc.asyncProperty(seeds, anyText, async (seed, text) => {
        const wallet = evmWallet(seed);
        const signature = await wallet.sign(text);
        expect(await recoverSigner(text, signature)).toEqual({ address: wallet.address.toLowerCase(), lowS: true });
        const other = await recoverSigner(`${text}.`, signature);
        expect(other?.address).toBe(
          (await recoverMessageAddress({ message: `${text}.`, signature: signature as `0x${string}` })).toLowerCase(),
        );
        expect(other?.address).not.toBe(wallet.address.toLowerCase());
      }),
      { numRuns: RUNS },
    );
  });

  it('is recovered to the same key, or to none, by the addon and by viem, whatever the bytes', async () => {
    const [native, viem] = await Promise.all(tools.map(([, load]) => load()));
    let found = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        edgeNumber(),
        edgeNumber(),
        fc.constantFrom(0 as const, 1 as const),
        async (digest, r, s, parity) => {
          const rs = Buffer.concat([r, s]);
          const one = await native!(digest, rs, parity);
          const two = await viem!(digest, rs, parity);
          if (one) found += 1;
          // Out of range is refused before either is asked; there they may differ.
          const inRange = [r, s].every(
            (number) =>
              BigInt(`0x${number.toString('hex')}`) % SECP256K1_ORDER === BigInt(`0x${number.toString('hex')}`) &&
              !number.equals(Buffer.alloc(32)),
          );
          if (inRange) expect(one && Buffer.from(one).toString('hex')).toBe(two && Buffer.from(two).toString('hex'));
        },
      ),
      { numRuns: Math.max(RUNS * 5, 180) },
    );
    expect(found).toBeGreaterThan(0);
  });

  it('takes 27, 28, 0 and 1 as the last byte', async () => {
    const wallet = evmWallet();
    const signature = await wallet.sign('text');
    const v = Number.parseInt(signature.slice(130), 16);
    for (let last = 0; last < 256; last += 1) {
      const signer = await recoverSigner('text', signature.slice(0, 130) + last.toString(16).padStart(2, '0'));
      expect(signer?.address === wallet.address.toLowerCase(), String(last)).toBe(last === v || last === v - 27);
    }
  });

  it('tells the form with a high s, which anybody can make of every signature', async () => {
    const wallet = evmWallet();
    const high = malleated(await wallet.sign('text'));
    expect(await recoverSigner('text', high)).toEqual({ address: wallet.address.toLowerCase(), lowS: false });
    expect(await verifyWalletSignature({ account: wallet.account, text: 'text', signature: high })).toBe(false);
  });

  it('is hex, with 0x or without', async () => {
    const wallet = evmWallet();
    const good = await wallet.sign('text');
    for (const signature of [good, good.slice(2), good.slice(2).toUpperCase()])
      expect(await recoverSigner('text', signature)).toEqual({ address: wallet.address.toLowerCase(), lowS: true });
  });

  it('has 65 bytes of hex and numbers of the curve', async () => {
    const good = await evmWallet().sign('text');
    const zero = '0'.repeat(64);
    const order = SECP256K1_ORDER.toString(16);
    for (const signature of [
      `0X${good.slice(2)}`,
      good.slice(0, -2),
      `${good}00`,
      ` ${good}`,
      good.replace(/.$/, 'g'),
      `0x${zero}${good.slice(66)}`,
      `${good.slice(0, 66)}${zero}1b`,
      `0x${order}${good.slice(66)}`,
      `${good.slice(0, 66)}${order}1b`,
      `0x${'f'.repeat(64)}${good.slice(66)}`,
      '0x',
      '',
    ]) {
      expect(await recoverSigner('text', signature), signature).toBeNull();
    }
  });
});

it('knows the checksums of EIP-55', () => {
  const known = [
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ];
  for (const address of known) {
    expect(parseEvmAddress(address)).toBe(address.toLowerCase());
    expect(parseEvmAddress(address.replace(/[a-f](?=[^a-f]*$)/, (letter) => letter.toUpperCase()))).toBeNull();
  }
});

it('is verified for the account it is said to be of, and for no other', async () => {
  const wallets = [solanaWallet('a'), solanaWallet('b'), evmWallet('a'), evmWallet('b')];
  for (const signer of wallets) {
    const signature = await signer.sign('a text');
    for (const { account } of wallets)
      expect(await verifyWalletSignature({ account, text: 'a text', signature })).toBe(account === signer.account);
    expect(await verifyWalletSignature({ account: signer.account, text: 'a text', signature: 'nonsense' })).toBe(false);
  }
  const signature = await wallets[2]!.sign('a text');
  for (const account of [
    'tollgate:local:dev',
    `eip155:1:${wallets[2]!.address.toLowerCase()}`,
    `eip155:${wallets[2]!.address}`,
    'eip155:',
    'solana:',
    '',
  ])
    expect(await verifyWalletSignature({ account, text: 'a text', signature })).toBe(false);
});

/** A number of 32 bytes, often one at the edge of the curve's order. */
function edgeNumber(): fc.Arbitrary<Buffer> {
  const edges = [
    0n,
    1n,
    2n,
    SECP256K1_ORDER / 2n,
    SECP256K1_ORDER / 2n + 1n,
    SECP256K1_ORDER - 1n,
    SECP256K1_ORDER,
    SECP256K1_ORDER + 1n,
    2n ** 256n - 1n,
  ];
  return fc.oneof(
    { weight: 3, arbitrary: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...edges).map((value) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')),
    },
  );
}

/** The other form of an EVM signature: s becomes n - s, and the last byte changes. */
function malleated(signature: string): string {
  const s = SECP256K1_ORDER - BigInt(`0x${signature.slice(66, 130)}`);
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

/** S = h·a for R the neutral point, which verifies by the equation alone. */
function neutralS(publicKey: Uint8Array, secretKey: Uint8Array, text: string): Buffer {
  const hashed = nacl.hash(secretKey.subarray(0, 32)).subarray(0, 32);
  hashed[0]! &= 248;
  hashed[31] = (hashed[31]! & 127) | 64;
  const h = littleEndian(nacl.hash(Buffer.concat([SMALL_ORDER[2]!, publicKey, Buffer.from(text)])));
  const s = toLittleEndian((h * littleEndian(hashed)) % ED25519_ORDER);
  expect(nacl.sign.detached.verify(Buffer.from(text), Buffer.concat([SMALL_ORDER[2]!, s]), publicKey)).toBe(true);
  return s;
}
