import type { FastifySchema } from 'fastify';
import { DOCUMENTED } from '#gateway';
import { A2A_ERROR } from '#pages';

const TAGS = ['Agents'];

const POST =
  'A2A 0.3 and 1.0 (header `A2A-Version`; without it 0.3, or what the method is of): one JSON-RPC 2.0 request such as `message/send` or `SendMessage`, or, below the ' +
  'address of the agent, the routes of HTTP+JSON (`/message:send`, `/tasks/{id}`, …). A bare `{"message": …}` is answered with its task. Messages are billed: the estimate ' +
  'is locked, and settled once when the task ends; everything else is free. Metadata of the reply tells its cost.';

const headers = {
  type: 'object',
  properties: {
    'a2a-version': {
      type: 'string',
      description: '`0.3` or `1.0`',
      [DOCUMENTED]: { pattern: '^(?:0\\.3|1\\.0)$' },
    },
  },
};

const BODY = {
  title: 'AgentRequest',
  type: 'object',
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'integer'] },
    method: { type: 'string' },
    params: { type: 'object' },
    message: { type: 'object', description: 'Alone, without `jsonrpc`: the bare form of a message.' },
  },
  additionalProperties: true,
  [DOCUMENTED]: {
    allOf: [
      {
        anyOf: [
          { required: ['jsonrpc', 'id', 'method'] },
          { required: ['message'], not: { anyOf: [{ required: ['jsonrpc'] }, { required: ['method'] }] } },
        ],
      },
    ],
  },
};

const example = {
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] } },
};

/**
 * The OpenAPI description of an address of A2A. It does not validate requests. `all`: the address of all agents.
 * `hide`: leaves the address out, because another one is described instead.
 */
export function describeEndpoint(all: boolean, hide: boolean): Readonly<Record<'post' | 'get', FastifySchema>> {
  const params = {
    type: 'object',
    properties: {
      '*': {
        type: 'string',
        description: 'Name of the agent, or `<provider id>:<name>`; routes of HTTP+JSON follow it',
      },
    },
  };
  const common = { tags: TAGS, hide, headers, ...(all ? {} : { params }), response: { default: A2A_ERROR } };
  return {
    post: {
      ...common,
      response: {
        200: {
          type: 'object',
          description: 'The result, as JSON or as a stream of events.',
          additionalProperties: true,
        },
        default: A2A_ERROR,
      },
      summary: all ? 'Send a message to the agent that it names' : 'Send a message to an agent',
      operationId: all ? 'sendMessage' : 'sendMessageToAgent',
      description: POST,
      consumes: ['application/json', 'application/a2a+json'],
      body: { ...BODY, examples: [example] },
    },
    get: { ...common, hide: true },
  };
}
