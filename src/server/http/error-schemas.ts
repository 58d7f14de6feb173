/* Schemas of errors, one for each form that errors have. A route names its own in `response.default`. */

const terms = {
  x402Version: { type: 'integer', const: 2 },
  resource: {
    type: 'object',
    description: 'What is paid for: `url`, `description`, `mimeType`.',
    additionalProperties: true,
  },
  accepts: {
    type: 'array',
    description: 'One entry for each chain; pay one of them.',
    items: {
      title: 'PaymentTerms',
      type: 'object',
      required: ['scheme', 'network', 'amount', 'asset', 'payTo'],
      properties: {
        scheme: { type: 'string', description: 'Such as `exact`.' },
        network: { type: 'string', description: 'CAIP-2.' },
        amount: { type: 'string', description: 'In units of the asset: micro-USDC.' },
        asset: { type: 'string', description: 'Address of USDC on that chain.' },
        payTo: { type: 'string' },
        maxTimeoutSeconds: { type: 'integer' },
        extra: { type: 'object', additionalProperties: true },
      },
    },
  },
  extensions: { type: 'object', additionalProperties: true },
} as const;

export const ERROR_MESSAGE = { type: 'string', description: 'What is wrong, and what would be right.' } as const;
const message = ERROR_MESSAGE;
const type = { type: 'string', description: 'A stable name, such as `insufficient_balance`.' } as const;
const param = { type: ['string', 'null'], description: 'The field that is wrong.' } as const;

const ERROR_DETAIL = {
  title: 'ErrorDetail',
  type: 'object',
  required: ['message', 'type', 'code'],
  properties: {
    message,
    type,
    code: {
      type: 'integer',
      description: 'The HTTP status again. Below `/v1` it is a text or null, as in OpenAI’s API.',
    },
    param,
  },
} as const;

export const ERROR = {
  title: 'Error',
  type: 'object',
  required: ['error'],
  properties: { error: ERROR_DETAIL },
} as const;

export const PAYMENT_REQUIRED = {
  title: 'PaymentRequired',
  type: 'object',
  description:
    'An error, and the terms on which a payment is taken in place: an x402 PaymentRequired. The terms are there where this gateway has chains.',
  required: ['error'],
  properties: { error: ERROR_DETAIL, ...terms },
} as const;

export const MEDIA_ERROR = {
  title: 'MediaError',
  type: 'object',
  description: 'An error whose `code` is a word. In a 402 also the terms of a payment.',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'type'],
      properties: {
        code: { type: 'string', description: 'A stable word, such as `invalid_model`.' },
        message,
        type,
        param,
      },
    },
    ...terms,
  },
} as const;

/**
 * The schema of errors in the form of another API, which have the terms of a payment, too. `whose`: such as
 * `Cohere’s API`.
 */
export const foreignError = (title: string, whose: string, required: readonly string[], properties: object) => ({
  title,
  type: 'object',
  description: `An error in the form of ${whose}. In a 402 also the terms of a payment.`,
  required,
  properties: { ...properties, ...terms },
});

export const COHERE_ERROR = foreignError('CohereError', 'Cohere’s API', ['id', 'message'], {
  id: { type: 'string', description: 'The id of the request.' },
  message,
});

/** An error of the lists of models, which clients of two APIs ask for. */
export const MODELS_ERROR = {
  title: 'ModelsError',
  type: 'object',
  description: 'An error. With the header `anthropic-version` it has the form of Anthropic’s API, without `code`.',
  required: ['error'],
  properties: {
    type: { type: 'string', description: '`error`, in the form of Anthropic’s API.' },
    error: {
      title: 'ModelsErrorDetail',
      type: 'object',
      required: ['message', 'type'],
      properties: { message, type, code: { type: 'integer', description: 'The HTTP status again.' }, param },
    },
    request_id: { type: 'string', description: 'In the form of Anthropic’s API.' },
  },
} as const;

const RPC_FAULT = {
  title: 'JsonRpcFault',
  type: 'object',
  properties: {
    code: { type: 'integer' },
    message,
    data: { description: 'Where the gateway itself says it: `type`, a stable name such as `rate_limit_exceeded`.' },
  },
  additionalProperties: true,
} as const;

export const JSON_RPC_ERROR = {
  title: 'JsonRpcError',
  type: 'object',
  description: 'A JSON-RPC error.',
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'number', 'null'] },
    error: RPC_FAULT,
  },
  additionalProperties: true,
} as const;

/** An error of the addresses of agents, which also speak HTTP+JSON. */
export const A2A_ERROR = {
  ...JSON_RPC_ERROR,
  title: 'AgentError',
  description: 'A JSON-RPC error, or that of HTTP+JSON.',
} as const;
