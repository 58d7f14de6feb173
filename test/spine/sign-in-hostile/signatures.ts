import { createHash } from 'node:crypto';
import bs58 from 'bs58';
import nacl from 'tweetnacl';
import { hashMessage, keccak256, recoverMessageAddress, serializeSignature, stringToHex, verifyMessage } from 'viem';
import { sign } from 'viem/accounts';
import {
  evmWallet,
  message,
  messageLines,
  presign,
  solanaWallet,
  type Envelope,
  type TestWallet,
} from '../../support/wallets.ts';

/** What is wrong with a signature, and an envelope whose message is right. */
export type Forged = readonly [name: string, envelope: { readonly message: string; readonly signature: unknown }];

/** Order of Ed25519's group, and of secp256k1's. */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const littleEndian = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex') || '0'}`);
const toLittleEndian = (number: bigint) => Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse();
const sha512 = (...parts: Uint8Array[]) => createHash('sha512').update(Buffer.concat(parts)).digest();

/** Things that are no signature of any wallet. */
const ODD: readonly (readonly [string, unknown])[] = [
  ['absent', undefined],
  ['null', null],
  ['true', true],
  ['0', 0],
  ['a number', 12345],
  ['empty', ''],
  ['a space', ' '],
  ['0x', '0x'],
  ['a word', 'signature'],
  ['an empty list', []],
  ['an object', { signature: 'x' }],
  ['10,000 zeros', '0'.repeat(5000)],
  ['10,000 ones', '1'.repeat(5000)],
  ['NUL', '\0'],
  ['emoji', '🔑🔑🔑'],
  ['__proto__', '__proto__'],
];

function flipped(bytes: Uint8Array, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at]! ^= 1;
  return changed;
}

/**
 * Signatures that come as something else than themselves, whatever the chain. `encode` writes bytes as the chain does.
 */
async function ofAnyChain(
  wallet: TestWallet,
  other: TestWallet,
  encode: (bytes: Uint8Array) => string,
  bytes: Uint8Array,
  right: Envelope,
): Promise<Forged[]> {
  const text = right.message;
  const forged = (name: string, signature: unknown): Forged => [name, { message: text, signature }];
  const of = async (name: string, signed: string) => forged(name, await wallet.sign(signed));
  const lines = text.split('\n');
  return [
    ...ODD.map(([name, signature]) => forged(`that is ${name}`, signature)),
    forged('in a list', [right.signature]),
    forged('in an object', { signature: right.signature }),
    forged('in a list of bytes', [...bytes]),
    forged('with a space before it', ` ${right.signature}`),
    forged('with a line feed after it', `${right.signature}\n`),
    forged('with NUL after it', `${right.signature}\0`),
    forged('in quotation marks', `"${right.signature}"`),
    forged('twice', right.signature + right.signature),
    forged('twice with a comma', `${right.signature},${right.signature}`),
    forged('without its first letter', right.signature.slice(1)),
    forged('without its last letter', right.signature.slice(0, -1)),
    forged('with one letter more', `${right.signature}1`),
    forged('backwards', right.signature.split('').reverse().join('')),
    forged('in half', encode(bytes.subarray(0, 32))),
    forged('without its last byte', encode(bytes.subarray(0, -1))),
    forged('without its first byte', encode(bytes.subarray(1))),
    forged('with a byte more', encode(Buffer.concat([bytes, Buffer.of(0)]))),
    forged('with a byte before it', encode(Buffer.concat([Buffer.of(0), bytes]))),
    forged(
      'with its halves swapped',
      encode(Buffer.concat([bytes.subarray(32, 64), bytes.subarray(0, 32), bytes.subarray(64)])),
    ),
    forged(
      'with its first half twice',
      encode(Buffer.concat([bytes.subarray(0, 32), bytes.subarray(0, 32), bytes.subarray(64)])),
    ),
    forged('of zeros', encode(Buffer.alloc(bytes.length))),
    forged('of ones', encode(Buffer.alloc(bytes.length, 0xff))),
    ...[0, 1, 15, 31, 32, 33, 48, 62, 63].map((at) =>
      forged(`with a bit changed in byte ${at}`, encode(flipped(bytes, at))),
    ),
    forged('of another key', await other.sign(text)),
    await of('of the empty text', ''),
    await of('of the first line', lines[0]!),
    await of('of all but the last letter', text.slice(0, -1)),
    await of('of a line feed more', `${text}\n`),
    await of('of CRLF in place of line feeds', lines.join('\r\n')),
    await of('of the text in capitals', text.toUpperCase()),
    await of('of the text twice', text + text),
    await of('of the text in base64', Buffer.from(text).toString('base64')),
    await of('of the text in hex', Buffer.from(text).toString('hex')),
    await of('of a hash of the text', createHash('sha256').update(text).digest('hex')),
    await of('of a message for another domain', message(wallet, { domain: 'evil.example' })),
    await of('of a message with another chain', message(wallet, { chainId: 'eip155:1' })),
    await of('of a message with a nonce', message(wallet, { nonce: 'abcdef0123456789' })),
    await of('of a message of another wallet', message(other)),
    ['for a message of another wallet', { message: message(other), signature: await wallet.sign(message(other)) }],
    [
      'for a message with another chain',
      {
        message: text.replace(/Chain ID: .*/, `Chain ID: ${wallet.namespace === 'solana' ? 'devnet' : '1'}`),
        signature: right.signature,
      },
    ],
    [
      'for a message with a later end',
      {
        message: text.replace(
          /(Expiration Time: )(.*)/,
          (_, label: string, time: string) => label + new Date(Date.parse(time) + 1).toISOString(),
        ),
        signature: right.signature,
      },
    ],
    [
      'for a message with a resource more',
      { message: `${text}\nResources:\n- https://tollgate.test/`, signature: right.signature },
    ],
    [
      'for a message with a statement',
      { message: [...lines.slice(0, 3), 'More.', '', ...lines.slice(3)].join('\n'), signature: right.signature },
    ],
  ];
}

/** The fourteen encodings of the points of small order: seven, each with and without the bit of the sign. */
export const SMALL_ORDER_KEYS: readonly Uint8Array[] = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
].flatMap((hex) => {
  const signed = Buffer.from(hex, 'hex');
  signed[31]! |= 0x80;
  return [Buffer.from(hex, 'hex'), signed];
});

/**
 * A sign-in as the "owner" of a key of small order, made without any secret: where the hash of the message is a
 * multiple of the order of the key, the key plays no part, and the signature is that of whoever made its first
 * half. Verifiers that follow RFC 8032 alone accept it.
 */
function forgeSmallOrder(key: Uint8Array): Envelope & { readonly accepted: boolean } {
  const seed = Buffer.alloc(32, 7);
  const first = nacl.sign.keyPair.fromSeed(seed).publicKey;
  const scalar = sha512(seed).subarray(0, 32);
  scalar[0]! &= 248;
  scalar[31] = (scalar[31]! & 63) | 64;
  const signature = Buffer.concat([first, toLittleEndian(littleEndian(scalar) % L)]);
  const wallet = { ...solanaWallet(seed), address: bs58.encode(key) };
  for (let attempt = 0; ; attempt += 1) {
    const text = message(wallet, { requestId: `attempt-${attempt}` });
    if ((littleEndian(sha512(first, key, Buffer.from(text))) % L) % 8n !== 0n) continue;
    return {
      message: text,
      signature: bs58.encode(signature),
      accepted: nacl.sign.detached.verify(Buffer.from(text), signature, key),
    };
  }
}

/**
 * One for each key. `accepted` says whether a plain Ed25519 verifier takes it for good: else it would prove nothing.
 */
export const smallOrderForgeries = () => SMALL_ORDER_KEYS.map(forgeSmallOrder);

export async function hostileSolanaSignatures(): Promise<readonly Forged[]> {
  const seed = Buffer.alloc(32, 42);
  const wallet = solanaWallet(seed);
  const right = await presign(wallet);
  const bytes = bs58.decode(right.signature);
  const forged = (name: string, signature: unknown): Forged => [name, { message: right.message, signature }];
  const s = littleEndian(bytes.subarray(32));
  const withS = (value: bigint) => bs58.encode(Buffer.concat([bytes.subarray(0, 32), toLittleEndian(value)]));
  const general = await ofAnyChain(wallet, solanaWallet(), (part) => bs58.encode(part), bytes, right);

  // The owner of a key can sign with R = the neutral element; no wallet does, and the signature gives the key away.
  const a = sha512(seed).subarray(0, 32);
  a[0]! &= 248;
  a[31] = (a[31]! & 63) | 64;
  const neutral = Buffer.from(SMALL_ORDER_KEYS[0]!);
  const h = littleEndian(sha512(neutral, wallet.secret.subarray(32), Buffer.from(right.message))) % L;
  const neutralS = toLittleEndian((h * littleEndian(a)) % L);

  return [
    ...general,
    ...[1n, 2n, 3n, 7n, 14n].map((times) => forged(`with ${times} × L added to S`, withS(s + times * L))),
    forged('with S = 0', withS(0n)),
    forged('with S = L', withS(L)),
    forged('with -S', withS(L - s)),
    forged('with S = 2²⁵⁶ - 1', withS(2n ** 256n - 1n)),
    forged('whose R is the neutral element', bs58.encode(Buffer.concat([neutral, neutralS]))),
    ...SMALL_ORDER_KEYS.slice(0, 14).map((point, index) =>
      forged(`whose R is point ${index + 1} of small order`, bs58.encode(Buffer.concat([point, bytes.subarray(32)]))),
    ),
    ...smallOrderForgeries().map((envelope, index): Forged => [`forged for key ${index + 1} of small order`, envelope]),
    [
      'of zeros, for the address of ones',
      {
        message: message({ ...wallet, address: '1'.repeat(32) }),
        signature: bs58.encode(Buffer.concat([neutral, Buffer.alloc(32)])),
      },
    ],
    [
      'that needs no key, for the address of ones',
      { message: message({ ...wallet, address: '1'.repeat(32) }), signature: '1'.repeat(64) },
    ],
    forged('in base58 with eight leading ones', `${'1'.repeat(8)}${right.signature}`),
    forged('in base58 with a letter that it has not', `${right.signature.slice(0, -1)}0`),
    forged('in base58 with a multibase prefix', `z${right.signature}`),
    forged('in base64 without its last bytes', Buffer.from(bytes.subarray(0, 60)).toString('base64')),
    forged('in base64 with a byte more', Buffer.concat([bytes, Buffer.of(1)]).toString('base64')),
    forged('in base64 with three paddings', `${Buffer.from(bytes).toString('base64')}=`),
    forged('in base64 of base58', Buffer.from(right.signature).toString('base64')),
    forged('in base64 of hex', Buffer.from(Buffer.from(bytes).toString('hex')).toString('base64')),
    forged('in hex', Buffer.from(bytes).toString('hex')),
    forged('in hex with 0x', `0x${Buffer.from(bytes).toString('hex')}`),
    forged('of an EVM wallet', await evmWallet().sign(right.message)),
    forged(
      'of the message behind the prefix of EIP-191',
      await wallet.sign(`\x19Ethereum Signed Message:\n${right.message.length}${right.message}`),
    ),
    forged(
      'of the message behind the prefix of Solana off-chain messages',
      await wallet.sign(`\xffsolana offchain${right.message}`),
    ),
    forged(
      'that signs the message with the message before it',
      bs58.encode(nacl.sign(Buffer.from(right.message), wallet.secret)),
    ),
  ];
}

const evmBytes = (signature: string) => Buffer.from(signature.slice(2), 'hex');
const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}`;
const word = (number: bigint) => Buffer.from(number.toString(16).padStart(64, '0'), 'hex');

export async function hostileEvmSignatures(): Promise<readonly Forged[]> {
  const wallet = evmWallet(Buffer.alloc(32, 42));
  // With a v of 28, so that the compact form is not what is left when v is cut off.
  let right = await presign(wallet);
  for (let attempt = 0; !right.signature.endsWith('1c'); attempt += 1)
    right = await presign(wallet, { requestId: `attempt-${attempt}` });
  const bytes = evmBytes(right.signature);
  const [r, s, v] = [bytes.subarray(0, 32), bytes.subarray(32, 64), bytes[64]!];
  const forged = (name: string, signature: unknown): Forged => [name, { message: right.message, signature }];
  const made = (name: string, parts: { r?: Uint8Array; s?: Uint8Array; v?: number }) =>
    forged(name, hex(Buffer.concat([parts.r ?? r, parts.s ?? s, Buffer.of(parts.v ?? v)])));
  const general = await ofAnyChain(wallet, evmWallet(), hex, bytes, right);
  const highS = word(N - BigInt(hex(s)));
  const privateKey = hex(wallet.secret) as `0x${string}`;
  const raw = async (digest: `0x${string}`) => serializeSignature(await sign({ hash: digest, privateKey }));
  const compact = Buffer.from(s);
  compact[0]! |= 0x80;
  const wrapped = (of: Uint8Array) =>
    `0x${'00'.repeat(31)}60${'00'.repeat(64)}${Buffer.from(of).toString('hex')}${'6492'.repeat(16)}`;
  const contract = `0x${'c0de'.repeat(10)}`;
  const contractMessage = messageLines(wallet, { address: contract }).join('\n');

  return [
    ...general,
    made('malleated to the high S', { s: highS, v: v === 27 ? 28 : 27 }),
    made('malleated to the high S, v of 0 and 1', { s: highS, v: v === 27 ? 1 : 0 }),
    made('with the high S and the v of the low one', { s: highS }),
    made('with the other v', { v: v === 27 ? 28 : 27 }),
    ...[2, 3, 4, 26, 29, 30, 31, 34, 35, 36, 37, 38, 127, 128, 255].map((value) =>
      made(`with v = ${value}`, { v: value }),
    ),
    made('with r = 0', { r: word(0n) }),
    made('with r = n', { r: word(N) }),
    made('with r = n + 1', { r: word(N + 1n) }),
    made('with r = 1', { r: word(1n) }),
    made('with s = 0', { s: word(0n) }),
    made('with s = n', { s: word(N) }),
    made('with s = n + 1', { s: word(N + 1n) }),
    made('with r = s = 0', { r: word(0n), s: word(0n) }),
    forged('in the compact form of EIP-2098', hex(Buffer.concat([r, compact]))),
    forged('with 0X', right.signature.replace('0x', '0X')),
    forged('with 0x twice', `0x${right.signature}`),
    forged('with a digit that hex has not', `${right.signature.slice(0, -1)}g`),
    forged('in base58', bs58.encode(bytes)),
    forged('in base64', bytes.toString('base64')),
    forged('with v first', hex(Buffer.concat([bytes.subarray(64), bytes.subarray(0, 64)]))),
    forged('with v in 32 bytes', hex(Buffer.concat([bytes.subarray(0, 64), word(BigInt(v))]))),
    forged('of the text without the prefix of EIP-191', await raw(keccak256(stringToHex(right.message)))),
    forged('of the digest with the prefix of EIP-191', await wallet.sign(hashMessage(right.message))),
    forged('of the digest itself twice hashed', await raw(keccak256(hashMessage(right.message)))),
    forged(
      'of the text behind a prefix with a wrong length',
      await raw(keccak256(stringToHex(`\x19Ethereum Signed Message:\n1${right.message}`))),
    ),
    forged('of a Solana wallet', await solanaWallet().sign(right.message)),
    forged('wrapped for a contract that is to be made', wrapped(bytes)),
    forged('of the magic of EIP-6492 alone', `0x${'6492'.repeat(16)}`),
    forged('of 2,000 bytes for a contract', `0x${'ab'.repeat(2000)}`),
    ['of a key for a contract', { message: contractMessage, signature: await wallet.sign(contractMessage) }],
    ['that is empty for a contract', { message: contractMessage, signature: '0x' }],
    [
      'wrapped for a contract that is to be made, for its address',
      { message: contractMessage, signature: wrapped(bytes) },
    ],
  ];
}

/** Whether a plain verifier takes the malleated EVM signature for good: else it would prove nothing. */
export async function malleatedIsRecovered(): Promise<boolean> {
  const [, envelope] = (await hostileEvmSignatures()).find(([name]) => name === 'malleated to the high S')!;
  const signature = envelope.signature as `0x${string}`;
  const { address } = evmWallet(Buffer.alloc(32, 42));
  return (
    (await recoverMessageAddress({ message: envelope.message, signature })) === address &&
    !(await verifyMessage({ address: `0x${'11'.repeat(20)}`, message: envelope.message, signature }))
  );
}
