import { createPrivateKey, createPublicKey, randomBytes, sign } from 'node:crypto';
import bs58 from 'bs58';
import { privateKeyToAccount } from 'viem/accounts';
import type { Wallet } from '../../src/providers/proxy/wallet/wallet.ts';

export const SOLANA_MAINNET = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
export const BASE = 'eip155:8453';
/** The domain that tests sign in to: `[sign_in]\ndomains = ["tollgate.test"]`. */
export const DOMAIN = 'tollgate.test';
export const SIGN_IN_TOML = `[sign_in]\ndomains = ["${DOMAIN}"]\nfailures_per_minute = 10000000\n`;

/** A throw-away wallet that also signs bytes and exposes its secret. */
export interface TestWallet extends Wallet {
  /** Ledger account. */
  readonly account: string;
  /** Solana: seed and public key, 64 bytes. EVM: 32 bytes. */
  readonly secret: Uint8Array;
}

/** The DER form of an Ed25519 private key (RFC 8410), before its seed. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Signs with Node's native Ed25519, which takes tenths of a millisecond. JavaScript needs ten milliseconds. */
export function solanaWallet(seed: Uint8Array = randomBytes(32)): TestWallet {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
  const publicKey = Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' })['x']!, 'base64url');
  const address = bs58.encode(publicKey);
  return {
    namespace: 'solana',
    chainId: SOLANA_MAINNET,
    address,
    accountId: `${SOLANA_MAINNET}:${address}`,
    providerId: address,
    account: `solana:${address}`,
    secret: Buffer.concat([seed, publicKey]),
    sign: async (text) => bs58.encode(sign(null, Buffer.from(text, 'utf8'), privateKey)),
  };
}

export function evmWallet(secret: Uint8Array = randomBytes(32)): TestWallet {
  const account = privateKeyToAccount(`0x${Buffer.from(secret).toString('hex')}`);
  const { address } = account;
  return {
    namespace: 'eip155',
    chainId: BASE,
    address,
    accountId: `${BASE}:${address}`,
    providerId: address.toLowerCase(),
    account: `eip155:${address.toLowerCase()}`,
    secret,
    sign: (text) => account.signMessage({ message: text }),
  };
}

/** Lines of a sign-in message that a test sets. null omits a line. A list repeats it. */
export interface MessageFields {
  readonly domain?: string;
  /** `Ethereum` or `Solana`. */
  readonly kind?: string;
  /** The whole first line. */
  readonly opening?: string | null;
  readonly address?: string | null;
  readonly statement?: string | null;
  readonly uri?: Line;
  readonly version?: Line;
  readonly chainId?: Line;
  readonly nonce?: Line;
  readonly issuedAt?: Line;
  readonly expirationTime?: Line;
  readonly notBefore?: Line;
  readonly requestId?: Line;
  readonly resources?: readonly string[] | null;
}
type Line = string | readonly string[] | null;

/** Formats the time this many seconds from now for a message. */
export const inSeconds = (seconds: number, now = Date.now()) => new Date(now + seconds * 1000).toISOString();

/** The lines of a valid sign-in message, in order, with the changes of `fields`. */
export function messageLines(wallet: Wallet, fields: MessageFields = {}): string[] {
  const {
    domain = DOMAIN,
    kind = wallet.namespace === 'solana' ? 'Solana' : 'Ethereum',
    statement = null,
    resources = null,
  } = fields;
  const line = (label: string, value: Line | undefined, usual: string | null) =>
    [value === undefined ? usual : value].flat().flatMap((one) => (one === null ? [] : [`${label}: ${one}`]));
  const opening =
    fields.opening === undefined ? `${domain} wants you to sign in with your ${kind} account:` : fields.opening;
  const address = fields.address === undefined ? wallet.address : fields.address;
  return [
    ...(opening === null ? [] : [opening]),
    ...(address === null ? [] : [address]),
    '',
    ...(statement === null ? [] : [statement, '']),
    ...line('URI', fields.uri, `https://${domain}/api/v1`),
    ...line('Version', fields.version, '1'),
    ...line('Chain ID', fields.chainId, wallet.chainId),
    ...line('Nonce', fields.nonce, null),
    ...line('Issued At', fields.issuedAt, inSeconds(0)),
    ...line('Expiration Time', fields.expirationTime, inSeconds(600)),
    ...line('Not Before', fields.notBefore, null),
    ...line('Request ID', fields.requestId, null),
    ...(resources === null ? [] : ['Resources:', ...resources.map((resource) => `- ${resource}`)]),
  ];
}

export const message = (wallet: Wallet, fields: MessageFields = {}) => messageLines(wallet, fields).join('\n');

export interface Envelope {
  readonly message: string;
  readonly signature: string;
}

/** Signs a message with its wallet, whatever its content is. Returns the envelope of shape A. */
export async function presign(wallet: Wallet, text: string | MessageFields = {}): Promise<Envelope> {
  const signed = typeof text === 'string' ? text : message(wallet, text);
  return { message: signed, signature: await wallet.sign(signed) };
}

/** Encodes an envelope, or any other JSON, for the header. */
export const encodeEnvelope = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');

/** The header value that signs in `wallet`. */
export const signInValue = async (wallet: Wallet, fields: MessageFields = {}) =>
  encodeEnvelope(await presign(wallet, fields));

/** Request headers that sign in `wallet`. */
export const signInHeaders = async (wallet: Wallet, fields: MessageFields = {}) => ({
  'sign-in-with-x': await signInValue(wallet, fields),
});
