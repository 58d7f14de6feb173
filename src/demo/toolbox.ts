import type { IncomingHttpHeaders } from 'node:http';
import { ArgumentError, createTools, type Surroundings, type Tool } from './tools.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** What is to be answered. `body` is null where there is nothing to say. */
export interface ToolboxReply {
  readonly status: number;
  readonly body: object | null;
}

/** Answers one POST. */
export type Toolbox = (text: string, headers: IncomingHttpHeaders) => ToolboxReply;

/** Each request of this revision stands alone. */
const MODERN = '2026-07-28';
/** Revisions that begin with `initialize`. Nothing is kept of it, so there is no session id. The newest first. */
const LEGACY = ['2025-11-25', '2025-06-18'];

const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const;

const SERVER_INFO = { name: 'demo-toolbox', title: 'Demo: Toolbox', version: '1.0.0' };
const CAPABILITIES = { tools: {} };
const INSTRUCTIONS = 'A few small tools to try calls with: dice, the time, and what a text weighs.';
/** The tools are the same as long as the process lives, and for everybody. */
const CACHED = { ttlMs: 3_600_000, cacheScope: 'public' };

const ERROR = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  server: -32000,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const;

class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code: number;
  readonly data: JsonObject | undefined;
  /** Where it is not 200. */
  readonly status: number;
  constructor(code: number, message: string, { status = 200, data }: { readonly status?: number; readonly data?: JsonObject } = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.data = data;
  }
}

/** An MCP server over Streamable HTTP that keeps nothing between requests, of the newest revision and of those with `initialize`. */
export function createToolbox(around: Surroundings): Toolbox {
  const tools = createTools(around);

  return (text, headers) => {
    let id: unknown = null;
    try {
      const message = parse(text);
      const { method, params = {} } = message;
      if (typeof method !== 'string' || !isObject(params))
        throw new ProtocolError(ERROR.invalidRequest, 'The body is no JSON-RPC request', { status: 400 });
      if (!Object.hasOwn(message, 'id')) return { status: 202, body: null };
      if (typeof message['id'] !== 'string' && !Number.isInteger(message['id']))
        throw new ProtocolError(ERROR.invalidRequest, 'The id must be a text or a whole number', { status: 400 });
      id = message['id'];
      const result = isModern(params, headers) ? modern(method, params, headers, tools) : legacy(method, params, headers, tools);
      return { status: 200, body: { jsonrpc: '2.0', id, result } };
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const { code, message, data, status } = error;
      return { status, body: { jsonrpc: '2.0', id, error: { code, message, ...(data === undefined ? {} : { data }) } } };
    }
  };
}

function parse(text: string): JsonObject {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    throw new ProtocolError(ERROR.parse, 'The body is not JSON', { status: 400 });
  }
  if (isObject(message) && message['jsonrpc'] === '2.0') return message;
  throw new ProtocolError(ERROR.invalidRequest, 'The body is no JSON-RPC 2.0 message', { status: 400 });
}

/** Versions are dates: they compare as texts. */
function isModern(params: JsonObject, headers: IncomingHttpHeaders): boolean {
  return Object.hasOwn(metaOf(params), META.version) || (header(headers, 'mcp-protocol-version') ?? '') >= MODERN;
}

function modern(method: string, params: JsonObject, headers: IncomingHttpHeaders, tools: readonly Tool[]): object {
  const { [META.version]: version, [META.capabilities]: capabilities } = metaOf(params);
  if (typeof version !== 'string' || !isObject(capabilities))
    throw new ProtocolError(ERROR.invalidParams, `params._meta must have ${META.version} and ${META.capabilities}`, { status: 400 });
  // What the headers say is repeated from the body, so that one who forwards need not read it. They have to agree.
  const repeated = { 'mcp-protocol-version': version, 'mcp-method': method, ...(method === 'tools/call' ? { 'mcp-name': params['name'] } : {}) };
  for (const [name, value] of Object.entries(repeated))
    if (header(headers, name) !== value)
      throw new ProtocolError(ERROR.headerMismatch, `The ${name} header must be what the body says`, { status: 400 });
  if (version !== MODERN)
    throw new ProtocolError(ERROR.unsupportedVersion, 'Unsupported protocol version', {
      status: 400,
      data: { supported: [MODERN], requested: version },
    });
  const complete = { resultType: 'complete', _meta: { [META.serverInfo]: SERVER_INFO } };
  if (method === 'server/discover')
    return { supportedVersions: [MODERN], capabilities: CAPABILITIES, instructions: INSTRUCTIONS, ...CACHED, ...complete };
  if (method === 'tools/list') return { ...list(params, tools), ...CACHED, ...complete };
  if (method === 'tools/call') return { ...call(params, tools), ...complete };
  throw new ProtocolError(ERROR.methodNotFound, 'Method not found', { status: 404 });
}

/** Also requests that come without `initialize`. */
function legacy(method: string, params: JsonObject, headers: IncomingHttpHeaders, tools: readonly Tool[]): object {
  const version = header(headers, 'mcp-protocol-version');
  if (version !== undefined && method !== 'initialize' && !LEGACY.includes(version))
    throw new ProtocolError(ERROR.server, `Unsupported protocol version; supported are ${[MODERN, ...LEGACY].join(', ')}`, { status: 400 });
  if (method === 'initialize') {
    const asked = String(params['protocolVersion']);
    const protocolVersion = LEGACY.includes(asked) ? asked : LEGACY[0];
    return { protocolVersion, capabilities: CAPABILITIES, serverInfo: SERVER_INFO, instructions: INSTRUCTIONS };
  }
  if (method === 'ping') return {};
  if (method === 'tools/list') return list(params, tools);
  if (method === 'tools/call') return call(params, tools);
  throw new ProtocolError(ERROR.methodNotFound, 'Method not found');
}

function list({ cursor }: JsonObject, tools: readonly Tool[]): object {
  if (cursor !== undefined) throw new ProtocolError(ERROR.invalidParams, 'There is one page, and no cursor leads to it');
  return { tools: tools.map(({ definition }) => definition) };
}

function call({ name, arguments: args = {} }: JsonObject, tools: readonly Tool[]): object {
  const tool = tools.find(({ definition }) => definition.name === name);
  if (!tool) throw new ProtocolError(ERROR.invalidParams, `There is no such tool; there are ${tools.map((one) => one.definition.name).join(', ')}`);
  if (!isObject(args)) throw new ProtocolError(ERROR.invalidParams, 'arguments must be an object');
  try {
    const { text, data } = tool.run(args);
    return { content: [{ type: 'text', text }], structuredContent: data };
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    return { content: [{ type: 'text', text: error.message }], isError: true };
  }
}

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

function metaOf({ _meta: meta }: JsonObject): JsonObject {
  return isObject(meta) ? meta : {};
}

function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
