import { secretsOf, type SealSecret } from '#security';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import bs58 from 'bs58';
import type { FastifyPluginAsync } from 'fastify';
import { loadStatements, type Database } from '#store';
import { GatewayError } from '#errors';
import { NO_WALLETS, type SignIn } from './sign-in.ts';

interface IssuedNonce {
  /** 43 or 44 letters and digits. */
  readonly nonce: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/**
 * Nonces of sign-in messages for sensitive requests. Each can be used once, at any gateway with the same seed and
 * database.
 */
export interface Nonces {
  /** A new nonce. It is not stored, because it contains its time and an authentication code. */
  issue(): IssuedNonce;
  /**
   * Marks a nonce as used, atomically. False for a nonce that was used, is too old, or was not issued by this
   * installation. Rejects with the database's error.
   */
  use(nonce: string): Promise<boolean>;
  /** Whether the id of somebody else's message is used for the first time. It is remembered until `until`. */
  useOnce(id: string, until: number): Promise<boolean>;
  /** Deletes at most `limit` used nonces that are too old to be accepted again. Resolves with their number. */
  sweep(limit?: number): Promise<number>;
}

interface NoncesOptions {
  /** 32 bytes that the gateways share. */
  readonly secret: SealSecret;
  readonly database: Pick<Database, 'query'>;
  readonly now: () => number;
  readonly random?: (bytes: number) => Uint8Array;
}

const TTL_MS = 10 * 60_000;
/**
 * The largest accepted difference between the clocks of two gateways. Used nonces are stored much longer than this time
 * and TTL_MS together.
 */
const SKEW_MS = 60_000;
const KEPT_MS = 60 * 60_000;

const TIME_BYTES = 6;
const RANDOM_BYTES = 10;
const CODE_BYTES = 16;
const CLAIM_BYTES = TIME_BYTES + RANDOM_BYTES;
/** The longest base58 of 32 bytes. The length is checked first, because the time of decoding grows with its square. */
const DIGITS_MAX = 44;

const SQL = loadStatements(import.meta.url, './sql/nonces.sql', ['useNonce', 'sweepNonces']);

export function createNonces({ secret, database, now, random = randomBytes }: NoncesOptions): Nonces {
  const secrets = secretsOf(secret);
  const codeOf = (claim: Uint8Array, key = secrets[0]!) =>
    createHmac('sha256', key).update(claim).digest().subarray(0, CODE_BYTES);

  /** The time at which a nonce was issued. null for a text that is not a nonce of this installation. */
  const issuedAt = (nonce: string): number | null => {
    if (nonce.length > DIGITS_MAX) return null;
    const bytes = bs58.decodeUnsafe(nonce);
    if (bytes?.length !== CLAIM_BYTES + CODE_BYTES) return null;
    const claim = Buffer.from(bytes.subarray(0, CLAIM_BYTES));
    return secrets.some((key) => timingSafeEqual(codeOf(claim, key), bytes.subarray(CLAIM_BYTES)))
      ? claim.readUIntBE(0, TIME_BYTES)
      : null;
  };

  return {
    issue() {
      const at = now();
      const claim = Buffer.alloc(CLAIM_BYTES);
      claim.writeUIntBE(at, 0, TIME_BYTES);
      claim.set(random(RANDOM_BYTES), TIME_BYTES);
      return { nonce: bs58.encode(Buffer.concat([claim, codeOf(claim)])), expiresAt: at + TTL_MS };
    },

    async use(nonce) {
      const issued = issuedAt(nonce);
      const at = now();
      if (issued === null || at > issued + TTL_MS || at < issued - SKEW_MS) return false;
      return (await database.query(SQL.useNonce, [nonce, at + KEPT_MS])).length > 0;
    },

    async useOnce(id, until) {
      return (await database.query(SQL.useNonce, [id, until])).length > 0;
    },

    async sweep(limit = 1_000) {
      return (await database.query(SQL.sweepNonces, [now(), limit])).length;
    },
  };
}

interface NonceDeps {
  readonly nonces: Pick<Nonces, 'issue'>;
  readonly signIn: Pick<SignIn, 'domains'>;
  readonly now: () => number;
}

const EXAMPLE_LIFETIME_MS = 5 * 60_000;
const LOOPBACK = /^(?:localhost|127\.|\[::1\])/;

const text = (description: string) => ({ type: 'string', description }) as const;
const messageSchema = {
  type: 'object',
  required: ['domain', 'uri', 'version', 'nonce', 'issued_at', 'expiration_time'],
  properties: {
    domain: text(
      'Domain of the first line: the host of this request if it is one of `domains`, otherwise the first of them',
    ),
    uri: text('Any address below it'),
    version: text('Always `1`'),
    nonce: text('The nonce again'),
    issued_at: text('RFC 3339'),
    expiration_time: text('RFC 3339'),
  },
} as const;

/** `GET /auth/nonce`: a nonce for one sign-in, and what to sign. Public. Register it under `/api/v1`. */
export function nonceRoutes({ nonces, signIn, now }: NonceDeps): FastifyPluginAsync {
  return async (app) => {
    app.get(
      '/auth/nonce',
      {
        schema: {
          summary: 'Get a nonce to sign in with',
          description:
            'Sensitive requests, such as creating a key, need a sign-in message with a nonce of this gateway. It can be used once, within 10 minutes. ' +
            'Replace the address and the chain in `example`, let the wallet sign it as it is, and send the base64 of the JSON `{"message", "signature"}` as the header SIGN-IN-WITH-X.',
          tags: ['Account'],
          security: [],
          response: {
            200: {
              description: 'A new nonce',
              type: 'object',
              required: ['nonce', 'expires_at', 'domains', 'message', 'example'],
              properties: {
                nonce: text('43 or 44 letters and digits'),
                expires_at: text('RFC 3339'),
                domains: {
                  type: 'array',
                  items: { type: 'string' },
                  description: 'Domains that a message may be made for',
                },
                message: messageSchema,
                example: text('A whole message, for a Solana wallet'),
              },
            },
          },
        },
      },
      (request, reply) => {
        // Only configured domains are used. A domain of the client's choice could make wallets sign in for another
        // site.
        const domain = signIn.domains.find((known) => known === request.host.toLowerCase()) ?? signIn.domains[0];
        if (domain === undefined) throw new GatewayError('not_found', NO_WALLETS);
        const { nonce, expiresAt } = nonces.issue();
        const at = now();
        const message = {
          domain,
          uri: `${LOOPBACK.test(domain) ? 'http' : 'https'}://${domain}/`,
          version: '1',
          nonce,
          issued_at: new Date(at).toISOString(),
          expiration_time: new Date(at + EXAMPLE_LIFETIME_MS).toISOString(),
        };
        void reply.header('cache-control', 'no-store');
        return {
          nonce,
          expires_at: new Date(expiresAt).toISOString(),
          domains: signIn.domains,
          message,
          example: exampleOf(message),
        };
      },
    );
  };
}

function exampleOf(
  message: Readonly<Record<'domain' | 'uri' | 'version' | 'nonce' | 'issued_at' | 'expiration_time', string>>,
): string {
  return [
    `${message.domain} wants you to sign in with your Solana account:`,
    '<address>',
    '',
    `URI: ${message.uri}`,
    `Version: ${message.version}`,
    'Chain ID: mainnet',
    `Nonce: ${message.nonce}`,
    `Issued At: ${message.issued_at}`,
    `Expiration Time: ${message.expiration_time}`,
  ].join('\n');
}
