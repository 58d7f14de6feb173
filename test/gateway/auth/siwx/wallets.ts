import { createHash } from 'node:crypto';
import bs58 from 'bs58';
import nacl from 'tweetnacl';
import { privateKeyToAccount } from 'viem/accounts';

export const START = Date.parse('2026-03-04T05:06:07.089Z');
export const DOMAIN = 'gateway.example';
export const SOLANA_MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
export const BASE = 'eip155:8453';

/** A wallet of a test, made by libraries that the gateway does not verify with. */
export interface TestWallet {
  readonly namespace: 'solana' | 'eip155';
  /** As the wallet writes it: with its checksum on EVM. */
  readonly address: string;
  /** Ledger account. */
  readonly account: string;
  readonly sign: (text: string) => Promise<string>;
}

const secretOf = (seed: string) => createHash('sha256').update(`wallet ${seed}`).digest();

export function solanaKeypair(seed: string): nacl.SignKeyPair {
  return nacl.sign.keyPair.fromSeed(secretOf(seed));
}

export function solanaWallet(seed = 'alice'): TestWallet {
  const { publicKey, secretKey } = solanaKeypair(seed);
  const address = bs58.encode(publicKey);
  return {
    namespace: 'solana',
    address,
    account: `solana:${address}`,
    sign: async (text) => bs58.encode(nacl.sign.detached(Buffer.from(text), secretKey)),
  };
}

export function evmWallet(seed = 'alice'): TestWallet {
  const account = privateKeyToAccount(`0x${secretOf(seed).toString('hex')}`);
  return {
    namespace: 'eip155',
    address: account.address,
    account: `eip155:${account.address.toLowerCase()}`,
    sign: (message) => account.signMessage({ message }),
  };
}

/** What varies in a message; null leaves a line out. */
export interface Fields {
  readonly domain: string;
  readonly account: string;
  readonly address: string;
  readonly statement: string | null;
  readonly uri: string;
  readonly version: string;
  readonly chainId: string;
  readonly nonce: string | null;
  readonly issuedAt: string | null;
  readonly expirationTime: string | null;
  readonly notBefore: string | null;
  readonly requestId: string | null;
  readonly resources: readonly string[] | null;
}

export const iso = (at: number): string => new Date(at).toISOString();

export function fieldsFor(wallet: TestWallet, changes: Partial<Fields> = {}): Fields {
  return {
    domain: DOMAIN,
    account: wallet.namespace === 'solana' ? 'Solana' : 'Ethereum',
    address: wallet.address,
    statement: 'Sign in.',
    uri: `https://${DOMAIN}/api/v1`,
    version: '1',
    chainId: wallet.namespace === 'solana' ? SOLANA_MAINNET : BASE,
    nonce: null,
    issuedAt: iso(START),
    expirationTime: iso(START + 600_000),
    notBefore: null,
    requestId: null,
    resources: null,
    ...changes,
  };
}

export function textOf(fields: Fields): string {
  const lines = [`${fields.domain} wants you to sign in with your ${fields.account} account:`, fields.address, ''];
  if (fields.statement !== null) lines.push(fields.statement, '');
  lines.push(`URI: ${fields.uri}`, `Version: ${fields.version}`, `Chain ID: ${fields.chainId}`);
  const optional = {
    Nonce: fields.nonce,
    'Issued At': fields.issuedAt,
    'Expiration Time': fields.expirationTime,
    'Not Before': fields.notBefore,
    'Request ID': fields.requestId,
  };
  for (const [name, value] of Object.entries(optional)) if (value !== null) lines.push(`${name}: ${value}`);
  if (fields.resources !== null) lines.push('Resources:', ...fields.resources.map((uri) => `- ${uri}`));
  return lines.join('\n');
}

export const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

/** The value of a header for a text as it is. */
export async function headerOf(wallet: TestWallet, message: string): Promise<string> {
  return encode({ message, signature: await wallet.sign(message) });
}

export async function headerFor(wallet: TestWallet, changes: Partial<Fields> = {}): Promise<string> {
  return headerOf(wallet, textOf(fieldsFor(wallet, changes)));
}
