import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';

const string = (name?: string) => ({ type: 'string', ...(name !== undefined && { 'x-mcp-header': name }) });

/** Input schemas by tool name: the first ones as the specification wants them, the others against it. */
export const SCHEMAS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  plain: { type: 'object', properties: { city: string() } },
  one: { type: 'object', properties: { city: string('City') } },
  all: {
    type: 'object',
    properties: {
      city: string('City'),
      count: { type: 'integer', 'x-mcp-header': 'x-Count' },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      where: { type: 'object', properties: { street: { type: 'object', properties: { name: string('Street') } } } },
    },
  },
  number: {
    type: 'object',
    properties: { city: string('City'), count: { type: 'number', 'x-mcp-header': 'x-Count' } },
  },
  twice: { type: 'object', properties: { city: string('City'), count: { type: 'integer', 'x-mcp-header': 'CITY' } } },
  inItems: { type: 'object', properties: { city: string('City'), list: { type: 'array', items: string('Item') } } },
  inAnyOf: {
    type: 'object',
    properties: { city: string('City') },
    anyOf: [{ properties: { count: string('x-Count') } }, {}],
  },
  inDefs: { type: 'object', properties: { city: string('City') }, $defs: { a: string('A') } },
  noToken: { type: 'object', properties: { city: string('City'), count: string('x count') } },
  emptyName: { type: 'object', properties: { city: string('City'), count: string('') } },
  noName: { type: 'object', properties: { city: string('City'), count: { type: 'string', 'x-mcp-header': 1 } } },
  objectType: {
    type: 'object',
    properties: { city: string('City'), where: { type: 'object', 'x-mcp-header': 'Where' } },
  },
  noType: { type: 'object', properties: { city: string('City'), count: { 'x-mcp-header': 'x-Count' } } },
  atRoot: { type: 'object', 'x-mcp-header': 'Root', properties: { city: string('City') } },
};

/** A server with a tool for each of these schemas, that answers `done`. */
export function headerTools(names: readonly string[] = Object.keys(SCHEMAS)): McpServer {
  const server = new McpServer({ name: 'headers', version: '1' });
  for (const name of names)
    server.registerTool(name, { inputSchema: fromJsonSchema(SCHEMAS[name]!) }, () => ({
      content: [{ type: 'text', text: 'done' }],
    }));
  server.registerPrompt('añadir', {}, () => ({ messages: [] }));
  server.registerResource('one', 'a://b/1', {}, (uri) => ({ contents: [{ uri: uri.href, text: 'one' }] }));
  return server;
}
