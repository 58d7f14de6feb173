import { TOOL_META } from '../catalogue/decorate.ts';

/** Tools of the gateway's own. No tool of a service has such a name: those have a slug before them. */
export const OWN = { find: 'find_tools', call: 'call_tool' } as const;

export const FIND_LIMIT = { fallback: 10, max: 50 } as const;
export const QUERY_MAX = 1_000;

const free = { [TOOL_META.price]: { per_call: '0', currency: 'USDC' } };

const FIND_TOOLS = {
  name: OWN.find,
  title: 'Find tools',
  description:
    'Search all tools that this gateway offers. Give words for what you want to do; the best matches come back with name, description, input schema and price. Then call one by its name through call_tool, or directly.',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', maxLength: QUERY_MAX, description: 'Words for what the tool should do, such as "search the web"; "" for all tools' },
      limit: { type: 'integer', minimum: 1, maximum: FIND_LIMIT.max, default: FIND_LIMIT.fallback, description: 'Most tools to return' },
      services: { type: 'array', items: { type: 'string' }, description: 'Search only in these services' },
    },
    required: ['query'],
  },
  outputSchema: {
    type: 'object',
    properties: {
      tools: {
        type: 'array',
        items: { type: 'object' },
        description: 'Best first: name, service, title, description, inputSchema, price, definition',
      },
      searched: { type: 'integer', description: 'How many tools were searched' },
    },
    required: ['tools', 'searched'],
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  _meta: free,
} as const;

const CALL_TOOL = {
  name: OWN.call,
  title: 'Call a tool',
  description:
    'Call a tool that find_tools has found, by its name and with arguments that fit its input schema. The result is that of the tool, and the price is that of the tool.',
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'The name of the tool as find_tools gives it' },
      arguments: { type: 'object', description: 'Arguments for the tool' },
    },
    required: ['name'],
  },
} as const;

/** As they are listed where there are too many others, JSON text. */
export const OWN_TOOLS: readonly string[] = [JSON.stringify(FIND_TOOLS), JSON.stringify(CALL_TOOL)];
