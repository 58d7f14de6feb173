import type { FastifySchema } from 'fastify';
import { DOCUMENTED } from '#http';
import { JSON_RPC_ERROR } from '#http/error-schemas';

const TAGS = ['MCP'];

const POST =
  'One JSON-RPC 2.0 message of the Model Context Protocol, of any revision from 2024-11-05 to 2026-07-28, as its Streamable HTTP transport has it. ' +
  '`tools/list` and `tools/call` are answered without `initialize` as well. `tools/call` is billed, everything else is free. ' +
  'A call\'s `result._meta` tells its cost and, where `_meta["tollgate/receipt"]` of the request is true, its signed receipt.';

const SESSION = {
  'mcp-session-id': {
    type: 'string',
    description: 'Of a session, which `initialize` opened (the revisions before 2026-07-28)',
    [DOCUMENTED]: { pattern: '^[\\x21-\\x7e]+$' },
  },
};

const MESSAGE = {
  title: 'McpMessage',
  type: 'object',
  required: ['jsonrpc', 'method'],
  properties: {
    jsonrpc: { type: 'string', const: '2.0' },
    id: { type: ['string', 'integer'], description: 'Absent from a notification' },
    method: { type: 'string', description: 'Such as `tools/list` or `tools/call`' },
    params: { type: 'object' },
  },
};

const EVENT_STREAM = {
  description: 'Messages of the server, as they come.',
  content: {
    'text/event-stream': { schema: { type: 'string', description: 'Events whose `data` is a JSON-RPC message.' } },
  },
};
const ENDED = { description: 'The session is over.', type: 'null' };

const params = {
  type: 'object',
  properties: {
    '*': {
      type: 'string',
      description:
        'Name of the service, or `<provider id>:<name>`; `a2a/<agent>` and `model/<model>` for the tool that asks one',
    },
  },
};
const querystring = {
  type: 'object',
  properties: {
    services: {
      type: 'string',
      description: 'Only these services, agents (`a2a/…`) and models (`model/…`): their names, by commas',
    },
  },
};

/**
 * The OpenAPI description of an MCP address, by HTTP method. It does not validate, because `classify` decides what a
 * message is. `all`: this is the address of all services. `hide`: the address is described elsewhere already.
 */
export function describeRoutes(
  all: boolean,
  hide: boolean,
): Readonly<Record<'post' | 'get' | 'delete', FastifySchema>> {
  const what = all ? 'every MCP service, agent and model that the caller may use' : 'one MCP service, agent or model';
  const common = { tags: TAGS, hide, ...(all ? { querystring } : { params }), response: { default: JSON_RPC_ERROR } };
  const method = all ? 'tools/list' : 'tools/call';
  const example = {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: all ? {} : { name: 'roll_dice', arguments: { dice: '2d6' } },
  };
  return {
    post: {
      ...common,
      response: {
        200: { type: 'object', description: 'The response, as JSON or as the last event of a stream.' },
        default: JSON_RPC_ERROR,
      },
      summary: `Call ${what}`,
      operationId: all ? 'callMcp' : 'callMcpService',
      description: POST,
      consumes: ['application/json'],
      headers: { type: 'object', properties: SESSION },
      body: { ...MESSAGE, examples: [example] },
    },
    get: {
      ...common,
      response: { 200: EVENT_STREAM, default: JSON_RPC_ERROR },
      summary: `Listen to a session with ${what}`,
      operationId: all ? 'listenMcp' : 'listenMcpService',
      description: 'The event stream of a session of the revisions before 2026-07-28.',
      headers: { type: 'object', required: ['mcp-session-id'], properties: SESSION },
    },
    delete: {
      ...common,
      response: { 200: ENDED, default: JSON_RPC_ERROR },
      summary: `End a session with ${what}`,
      description: 'The id of the session is in the header `mcp-session-id`. Its open streams end.',
      operationId: all ? 'endMcpSession' : 'endMcpServiceSession',
      headers: { type: 'object', required: ['mcp-session-id'], properties: SESSION },
    },
  };
}
