import type { FastifyInstance } from 'fastify';

const MEMBERS = ['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'];

const schema = {
  tags: ['Account'],
  security: [],
  summary: 'Show the keys that receipts and agent cards are signed with',
  operationId: 'showSigningKeys',
  description: 'A JSON Web Key set (RFC 7517).',
  response: {
    200: {
      description: 'The keys.',
      type: 'object',
      required: ['keys'],
      properties: {
        keys: {
          type: 'array',
          items: {
            type: 'object',
            required: ['kty', 'crv', 'kid', 'alg', 'use'],
            properties: Object.fromEntries(MEMBERS.map((name) => [name, { type: 'string' }])),
          },
        },
      },
    },
  },
};

/** `/.well-known/jwks.json`: the public keys that verify this gateway's signatures. */
export function addKeySetRoute(server: FastifyInstance, keys: readonly object[]): void {
  server.get('/.well-known/jwks.json', { schema }, () => ({ keys }));
}
