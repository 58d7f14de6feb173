import type { FastifySchema } from 'fastify';
import { EXAMPLE_MODEL, JSON_RPC_ERROR } from '#pages';

const POST =
  'One request, or a batch of up to 50. `rpc.discover` answers with the OpenRPC document of all methods: `models/list`, `chat/completions`, `tools/call`, ' +
  '`message/send`, `account/balance` and the others. Each entry of a batch is a separate call: it is authorised, counted and billed by itself, and answered in order. ' +
  '`result._meta` tells the cost of a billed call. Parameters are given by name; notifications are not executed; streams have their own endpoints.';

const REQUEST = {
  title: 'RpcRequest',
  type: 'object',
  required: ['jsonrpc', 'id', 'method'],
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'number'], description: 'The reply repeats it exactly as it was written' },
    method: { type: 'string', description: 'Such as `models/list`' },
    params: { type: 'object' },
  },
};

const REPLY = {
  title: 'RpcReply',
  type: 'object',
  description: 'It has either `result` or `error`.',
  required: ['jsonrpc', 'id'],
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'number', 'null'] },
    result: {},
    error: JSON_RPC_ERROR.properties.error,
  },
  additionalProperties: true,
};

const example = {
  jsonrpc: '2.0',
  id: 1,
  method: 'chat/completions',
  params: { model: EXAMPLE_MODEL, messages: [{ role: 'user', content: 'Hello' }] },
};

/** The description of the endpoint for the API reference. It is not used to validate requests. */
export const DESCRIPTION: FastifySchema = {
  tags: ['JSON-RPC'],
  // Some methods need no credential.
  security: [{}, { bearer: [] }, { apiKey: [] }, { wallet: [] }],
  summary: 'Call any primitive by JSON-RPC',
  description: POST,
  consumes: ['application/json'],
  body: { anyOf: [REQUEST, { type: 'array', minItems: 1, maxItems: 50, items: REQUEST }], examples: [example] },
  response: {
    200: {
      description: 'The reply, or the replies to a batch.',
      anyOf: [REPLY, { type: 'array', items: REPLY }],
    },
    204: { description: 'Nothing to answer: the body had only notifications.', type: 'null' },
    default: JSON_RPC_ERROR,
  },
};
