import {
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  randomBytes,
  type KeyObject,
  createECDH,
  sign,
} from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  fsyncSync,
  linkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, dirname } from 'node:path';
import bs58 from 'bs58';
import { giveToOwner, makeFolder } from '#store/owner';

/**
 * The gateway's identity. All its keys are derived from one seed of 32 bytes, so gateways with the same seed have the
 * same identity.
 */
export interface Identity {
  readonly receiptKey: ReceiptKey;
  /**
   * The public key, in base58, of a provider in the gateway's own configuration. The same name and seed always give the
   * same key.
   */
  providerId(providerName: string): string;
  /** A secret key of 32 bytes. The same purpose and seed always give the same key. */
  secret(purpose: string): Buffer;
  /**
   * For what is stored: `secret`, which seals, and behind it those of all other seeds, which still open. For
   * credentials and cookies use `accepted`: a seed that somebody else has could make them.
   */
  secrets(purpose: string): readonly Buffer[];
  /** `secret`, and behind it that of the second seed as long as it is configured. */
  accepted(purpose: string): readonly Buffer[];
  /** `secret` by the seed whose receipt key has an id; null: by the first seed that the database had. */
  secretBy(purpose: string, receiptKey: string | null): Buffer;
  /** Public keys of the other seeds, as `/.well-known/jwks.json` has them: what they sign can be checked. */
  readonly otherKeys: readonly (ReceiptKey['jwk'] | CardKey['jwk'])[];
}

interface ReceiptKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly id: string;
  readonly privateKey: KeyObject;
  /** The public key as published in `/.well-known/jwks.json`. */
  readonly jwk: {
    readonly kty: 'OKP';
    readonly crv: 'Ed25519';
    readonly x: string;
    readonly kid: string;
    readonly use: 'sig';
    readonly alg: 'EdDSA';
  };
}

/** The identity cannot be used. `message` tells the operator how to fix it. */
export class IdentityError extends Error {
  override readonly name = 'IdentityError';
}

const FILE = 'identity.json';
const FILE_BYTES_MAX = 64 * 1024;
const SEED_BYTES = 32;
const SEED_HEX = /^[0-9a-f]{64}$/;

/** The PKCS #8 frame of an Ed25519 private key (RFC 8410), to which the 32 bytes of the key are appended. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A seed as 64 hex digits, or a data directory with its file. */
type SeedSource = { readonly seed: string } | { readonly dataDir: string };

/** Seeds beside the present one. */
interface OtherSeeds {
  /** The one that is configured for the time of a change. */
  readonly second: SeedSource | null;
  /** Those that the database had before, as 64 hex digits, the first one first. */
  readonly former: readonly string[];
}

const NO_OTHERS: OtherSeeds = { second: null, former: [] };

/**
 * The identity of a seed (64 hex digits), or of a data directory. The first start creates `identity.json` in the
 * directory, readable only by its owner. Throws IdentityError if the file is readable by others, unreadable or damaged,
 * or if a seed has another form.
 */
export function createIdentity(source: SeedSource, others: OtherSeeds = NO_OTHERS): Identity {
  const seed = readSource(source, 'the identity seed');
  const second = others.second === null ? [] : [readSource(others.second, 'the second identity seed')];
  const former = others.former.map((one) => parseSeed(one, 'a former identity seed'));
  const all = [seed, ...former.toReversed(), ...second].filter(
    (one, at, seeds) => seeds.findIndex((each) => each.equals(one)) === at,
  );
  const receiptKeys = all.map(receiptKey);
  // Ids are names and not secrets. So they stay those of the first seed, and with them the earnings of providers.
  const first = former[0] ?? seed;
  const ids = new Map<string, string>();
  const secretOf = (one: Buffer, purpose: string) => deriveBytes(one, `secret:${purpose}`);
  return {
    secret: (purpose) => secretOf(seed, purpose),
    secrets: (purpose) => all.map((one) => secretOf(one, purpose)),
    accepted: (purpose) => [seed, ...second].map((one) => secretOf(one, purpose)),
    secretBy: (purpose, id) => secretOf(all[receiptKeys.findIndex((key) => key.id === id)] ?? first, purpose),
    receiptKey: receiptKeys[0]!,
    otherKeys: all
      .slice(1)
      .flatMap((one, at) => [
        receiptKeys[at + 1]!.jwk,
        createCardKey({ secret: (purpose) => secretOf(one, purpose) }).jwk,
      ]),
    providerId(providerName) {
      let id = ids.get(providerName);
      if (id === undefined)
        ids.set(providerName, (id = bs58.encode(rawPublicKey(deriveKey(first, `provider:${providerName}`)))));
      return id;
    },
  };
}

const readSource = (source: SeedSource, what: string): Buffer =>
  'seed' in source ? parseSeed(source.seed, what) : storedSeed(source.dataDir);

function deriveKey(seed: Buffer, purpose: string): KeyObject {
  return createPrivateKey({
    key: Buffer.concat([PKCS8_ED25519, deriveBytes(seed, purpose)]),
    format: 'der',
    type: 'pkcs8',
  });
}

function deriveBytes(seed: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, 'tollgate identity v1', purpose, 32));
}

function rawPublicKey(privateKey: KeyObject): Buffer {
  return Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' }).x!, 'base64url');
}

function receiptKey(seed: Buffer): ReceiptKey {
  const privateKey = deriveKey(seed, 'receipts');
  const x = rawPublicKey(privateKey).toString('base64url');
  const id = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');
  return { id, privateKey, jwk: { kty: 'OKP', crv: 'Ed25519', x, kid: id, use: 'sig', alg: 'EdDSA' } };
}

function parseSeed(hex: unknown, what: string): Buffer {
  if (typeof hex !== 'string' || !SEED_HEX.test(hex))
    throw new IdentityError(`${what} is not ${SEED_BYTES} bytes in lower-case hex`);
  return Buffer.from(hex, 'hex');
}

function storedSeed(dataDir: string): Buffer {
  const path = join(dataDir, FILE);
  return readSeed(path) ?? makeSeed(path);
}

/** null if the file does not exist yet. */
function readSeed(path: string): Buffer | null {
  let descriptor: number;
  try {
    // O_NONBLOCK: a named pipe at this path must not block the start.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw new IdentityError(`${path} cannot be read (${code}); make it readable for the user that runs the gateway`, {
      cause: error,
    });
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || stats.size > FILE_BYTES_MAX)
      throw new IdentityError(`${path} is not an identity file; move it away, or restore it from a backup`);
    if (process.platform !== 'win32' && (stats.mode & 0o077) !== 0) {
      throw new IdentityError(
        `${path} can be read by other users, and whoever reads it can sign as this gateway; run: chmod 600 ${path}`,
      );
    }
    return parseSeed(seedOf(readFileSync(descriptor, 'utf8')), `the seed in ${path}`);
  } finally {
    closeSync(descriptor);
  }
}

function seedOf(text: string): unknown {
  try {
    const content: unknown = JSON.parse(text);
    return typeof content === 'object' && content !== null && 'seed' in content ? content.seed : null;
  } catch {
    return null;
  }
}

/** Writes a new seed. Two gateways that start at the same time get the same seed. */
function makeSeed(path: string): Buffer {
  storeSecret(path, `${JSON.stringify({ seed: randomBytes(SEED_BYTES).toString('hex') })}\n`);
  const seed = readSeed(path);
  if (!seed) throw new IdentityError(`${path} vanished while it was made; start the gateway again`);
  return seed;
}

/**
 * Stores a secret in a new file that only its owner can read, and makes its directory. After a crash or on a full disk
 * the file is complete or absent. Returns false if the file exists already: of processes that start at the same time,
 * one is faster. Throws the errors of the file system.
 */
export function storeSecret(path: string, text: string): boolean {
  const directory = dirname(path);
  makeFolder(directory);
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  let stored = true;
  try {
    const descriptor = openSync(draft, 'wx', 0o600);
    try {
      giveToOwner(descriptor, directory);
      writeFileSync(descriptor, text, { flush: true });
    } finally {
      closeSync(descriptor);
    }
    linkSync(draft, path);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST' || syscall !== 'link') throw error;
    stored = false;
  } finally {
    rmSync(draft, { force: true });
  }
  syncDirectory(directory);
  return stored;
}

/** Makes a new link durable by syncing its directory. Windows has no call for this. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The P-256 key that agent cards are signed with (JWS ES256). */
export interface CardKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly alg: 'ES256';
  /** The public key as published in `/.well-known/jwks.json`. */
  readonly jwk: {
    readonly kty: 'EC';
    readonly crv: 'P-256';
    readonly x: string;
    readonly y: string;
    readonly kid: string;
    readonly use: 'sig';
    readonly alg: 'ES256';
  };
  /** R and S, 32 bytes each (RFC 7518 section 3.4). */
  sign(input: Uint8Array): Uint8Array;
}

/**
 * The card key of an identity. The same seed always gives the same key. The algorithm is ES256 because verifiers in all
 * languages support it. It is a separate key because no key has two uses.
 */
export function createCardKey(identity: Pick<Identity, 'secret'>): CardKey {
  const { privateKey, x, y } = deriveCardKey(identity.secret('agent cards'));
  const kid = createHash('sha256').update(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`).digest('base64url');
  return {
    kid,
    alg: 'ES256',
    jwk: { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' },
    sign: (input) => sign('sha256', input, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
  };
}

/** The private P-256 key of a secret, for a library that takes keys as JWK. */
export function signingJwk(secret: Buffer) {
  const { x, y, d } = deriveP256(secret);
  return { kty: 'EC', crv: 'P-256', x, y, d, use: 'sig', alg: 'ES256' } as const;
}

function deriveCardKey(secret: Buffer): { readonly privateKey: KeyObject; readonly x: string; readonly y: string } {
  const { x, y, d } = deriveP256(secret);
  return { privateKey: createPrivateKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x, y, d } }), x, y };
}

/** One in 2^32 secrets is not a valid scalar of the curve. Its hash is tried instead. */
function deriveP256(secret: Buffer): { readonly x: string; readonly y: string; readonly d: string } {
  const curve = createECDH('prime256v1');
  for (;;) {
    try {
      curve.setPrivateKey(secret);
      break;
    } catch {
      secret = createHash('sha256').update(secret).digest();
    }
  }
  const point = curve.getPublicKey();
  return {
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
    d: secret.toString('base64url'),
  };
}
