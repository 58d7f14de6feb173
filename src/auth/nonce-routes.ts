import type { FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#wire';
import { NO_WALLETS, type SignIn } from './siwx/sign-in.ts';
import type { Nonces } from './siwx/nonces.ts';

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
