import bs58 from 'bs58';
import nacl from 'tweetnacl';
import { recoverMessageAddress } from 'viem';
import { describe, expect, it } from 'vitest';
import { signInHeader, WalletError } from '../../../../src/providers/proxy/wallet/wallet.ts';
import { evmWallet, solanaWallet } from '../../../support/wallets.ts';

const solana = solanaWallet();
const evm = evmWallet();
const now = Date.UTC(2030, 0, 31, 12, 0, 0, 5);
const signIn = { domain: 'gateway.example:8443', uri: 'https://gateway.example:8443/api/v1', now, lifetimeMs: 90_000 };
const decode = (value: string) =>
  JSON.parse(Buffer.from(value, 'base64').toString('utf8')) as { message: string; signature: string };

describe('a sign-in header', () => {
  it('is base64 of a CAIP-122 message and its signature', async () => {
    const value = await signInHeader(solana, signIn);
    expect(value).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
    const { message, signature, ...rest } = decode(value);
    expect(rest).toEqual({});
    expect(message).toBe(`gateway.example:8443 wants you to sign in with your Solana account:
${solana.address}

URI: https://gateway.example:8443/api/v1
Version: 1
Chain ID: solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp
Issued At: 2030-01-31T12:00:00.005Z
Expiration Time: 2030-01-31T12:01:30.005Z`);
    expect(nacl.sign.detached.verify(Buffer.from(message), bs58.decode(signature), bs58.decode(solana.address))).toBe(
      true,
    );
  });

  it('has the statement and the nonce in their places', async () => {
    const { message, signature } = decode(
      await signInHeader(evm, { ...signIn, statement: 'I act for Acme.', nonce: 'abcDEF123' }),
    );
    expect(message).toBe(`gateway.example:8443 wants you to sign in with your Ethereum account:
${evm.address}

I act for Acme.

URI: https://gateway.example:8443/api/v1
Version: 1
Chain ID: eip155:8453
Nonce: abcDEF123
Issued At: 2030-01-31T12:00:00.005Z
Expiration Time: 2030-01-31T12:01:30.005Z`);
    expect(await recoverMessageAddress({ message, signature: signature as `0x${string}` })).toBe(evm.address);
  });

  it.each([
    ['domain', ''],
    ['domain', 'https://gateway.example'],
    ['domain', 'gateway.example/path'],
    ['domain', 'user@gateway.example'],
    ['domain', 'gateway.example\nURI: https://evil.example'],
    ['domain', 'gateway example'],
    ['domain', 'gatewаy.example'],
    ['uri', ''],
    ['uri', 'gateway.example'],
    ['uri', 'javascript:alert(1)'],
    ['uri', 'https://gateway.example\nVersion: 2'],
    ['uri', 'https://'],
    ['statement', ''],
    ['statement', 'two\nlines'],
    ['statement', 'a\rb'],
    ['statement', 'zero\u200bwidth'],
    ['nonce', ''],
    ['nonce', 'a b'],
    ['nonce', 'short'],
    ['nonce', 'with-hyphen'],
    ['nonce', 'a\nIssued At: 2020'],
  ] as const)('is not made with a %s like %j', async (field, value) => {
    await expect(signInHeader(solana, { ...signIn, [field]: value })).rejects.toThrow(WalletError);
  });
});
