const text = (description: string) => ({ type: 'string', description }) as const;
const textOrNull = (description: string) => ({ type: ['string', 'null'], description }) as const;

const SIGNED_IN_BY = ['wallet', 'api_key', 'development', 'person'] as const;

export const signInSchema = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  examples: [{ api_key: 'svc-sk-v2-…' }],
  properties: {
    siwx: {
      type: 'string',
      minLength: 1,
      maxLength: 8_192,
      description:
        'What would be the header SIGN-IN-WITH-X: the base64 of `{"message", "signature"}`. The message has a nonce of `/auth/nonce`.',
    },
    api_key: { type: 'string', minLength: 1, maxLength: 256, description: 'An API key.' },
    development: {
      type: 'boolean',
      const: true,
      description: 'The local account of a development gateway. Only a browser of the same machine gets it.',
    },
  },
} as const;

export const sessionSchema = {
  title: 'Session',
  type: 'object',
  required: ['account', 'signed_in_by', 'rights', 'step_up', 'wallet', 'key', 'id', 'idle_at', 'expires_at', 'ways'],
  properties: {
    account: textOrNull('CAIP-10; null without a session.'),
    signed_in_by: { type: ['string', 'null'], enum: [...SIGNED_IN_BY, null] },
    rights: {
      type: ['string', 'null'],
      enum: ['full', 'limited', null],
      description:
        '`limited`: of a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above.',
    },
    step_up: {
      type: ['string', 'null'],
      enum: ['wallet', 'api_key', 'person', null],
      description:
        "What keys, withdrawals and wallets need with the request itself: a wallet signs a new message, an API key is sent again, a person signs in at the company's provider again. null: nothing.",
    },
    wallet: textOrNull('CAIP-10 with the network that was signed on.'),
    key: textOrNull('Hash of the API key.'),
    id: textOrNull('Id of the session.'),
    idle_at: textOrNull('RFC 3339: the session is over then if it is not used before.'),
    expires_at: textOrNull('RFC 3339: the session is over then, used or not.'),
    ways: {
      type: 'array',
      items: { type: 'string', enum: SIGNED_IN_BY },
      description: 'How this browser can sign in here.',
    },
  },
} as const;

export const sessionListSchema = {
  type: 'object',
  required: ['data'],
  properties: {
    data: {
      type: 'array',
      items: {
        type: 'object',
        required: [
          'id',
          'signed_in_by',
          'wallet',
          'key',
          'client',
          'network',
          'created_at',
          'seen_at',
          'idle_at',
          'expires_at',
          'current',
        ],
        properties: {
          id: text('Id of the session.'),
          signed_in_by: { type: 'string', enum: SIGNED_IN_BY },
          wallet: sessionSchema.properties.wallet,
          key: sessionSchema.properties.key,
          client: text('User-Agent of the browser.'),
          network: textOrNull(
            'Network that the sign-in came from: the first 24 bits of an IPv4 address, or 64 of IPv6.',
          ),
          created_at: text('RFC 3339'),
          seen_at: text('RFC 3339, at most a minute old'),
          idle_at: text('RFC 3339'),
          expires_at: text('RFC 3339'),
          current: { type: 'boolean', description: 'It is the session of this request.' },
        },
      },
    },
  },
} as const;

export const endedSchema = {
  title: 'EndedSessions',
  type: 'object',
  required: ['ended'],
  properties: { ended: { type: 'integer', description: 'Sessions that were ended.' } },
} as const;
