/** Schema of an error of a JSON-RPC door, for the reference. */
export const JSON_RPC_ERROR = {
  type: 'object',
  description: 'A JSON-RPC error.',
  properties: {
    jsonrpc: { const: '2.0' },
    id: { type: ['string', 'integer', 'null'] },
    error: {
      type: 'object',
      properties: {
        code: { type: 'integer' },
        message: { type: 'string', description: 'What is wrong, and what would be right' },
        data: { description: 'Where the gateway itself says it: `type`, a stable name such as `rate_limit_exceeded`' },
      },
      additionalProperties: true,
    },
  },
  additionalProperties: true,
} as const;
