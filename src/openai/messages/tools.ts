import type { JsonObject } from '#wire';
import { GatewayError } from '#errors';
import type { ChatTool } from '../chat/chat-schema.ts';
import type { MessagesBody } from './schema.ts';
import { isStrict } from '../translated/strict-schema.ts';
import { invalid } from '../translated/chat-turns.ts';
import type { WireRequest } from '../translated/wire-request.ts';

interface MessagesChatTools {
  readonly tools: ChatTool[];
  readonly choice: unknown;
  readonly parallel: boolean | undefined;
  /** Names of the tools that no provider gets, as the client wrote them. */
  readonly dropped: readonly string[];
}

/** Whether the gateway calls a tool of a request, or is named as an MCP server. */
export const runsHere = ({ tools, mcp_servers: servers }: MessagesBody, request: WireRequest) =>
  (tools ?? []).some(({ type }) => type === 'mcp') ||
  (servers ?? []).some(({ url }) => typeof url === 'string' && request.serviceAt(url) !== null);

/** Claude Code's placeholder for tools that it names later. It has no meaning here. */
const PLACEHOLDER = 'DeferredToolPlaceholder';

/**
 * The tools of a request. Throws GatewayError `invalid_request`, or `unprocessable` if `tool_choice` forces a
 * dropped tool.
 */
export function toChatTools(body: MessagesBody, request: WireRequest): MessagesChatTools {
  const dropped: string[] = [];
  const tools: ChatTool[] = [];
  (body.tools ?? []).forEach((tool, index) => {
    const read = toChatTool(tool, `tools[${index}]`, body, request);
    if (read !== null) tools.push(read);
    else if (tool['name'] !== PLACEHOLDER) dropped.push(String(tool['name'] ?? tool['type']));
  });
  tools.push(...withoutToolset(body, request));
  const { tool_choice: choice } = body;
  const forced = choice?.type === 'tool' ? choice['name'] : null;
  if (typeof forced === 'string' && dropped.includes(forced))
    throw new GatewayError(
      'unprocessable',
      `tool_choice names ${forced}, which runs only at Anthropic. This gateway calls only tools of its own services: {"type": "mcp", "service": "…"}`,
      { param: 'tool_choice' },
    );
  return {
    tools,
    choice: choice && tools.length > 0 ? chatChoice(choice, request.toolNames) : undefined,
    parallel: choice?.['disable_parallel_tool_use'] === true && tools.length > 0 ? false : undefined,
    dropped,
  };
}

function chatChoice({ type, name }: JsonObject, names: WireRequest['toolNames']): unknown {
  if (type === 'any') return 'required';
  if (type !== 'tool') return type;
  if (typeof name !== 'string' || name === '') throw invalid('tool_choice.name', 'the name of a tool');
  return { type: 'function', function: { name: names.short(name) } };
}

/** Returns null for a tool that runs at Anthropic. */
function toChatTool(tool: JsonObject, at: string, body: MessagesBody, request: WireRequest): ChatTool | null {
  const { type, name, description, input_schema: schema, strict } = tool;
  if (type === 'mcp') return ownService(tool, at);
  if (type === 'mcp_toolset') return ofToolset(tool, at, body, request);
  if (name === PLACEHOLDER) return null;
  if (schema === undefined && typeof type === 'string' && type !== 'custom') {
    const family = CLIENT_TOOLS.find(({ prefix }) => type.startsWith(prefix));
    if (family === undefined) return null;
    const toolName = typeof name === 'string' ? name : family.name;
    return {
      type: 'function',
      function: {
        name: request.toolNames.short(toolName),
        description: family.description,
        parameters: family.parameters,
      },
    };
  }
  if (typeof name !== 'string') throw invalid(`${at}.name`, 'the name of the tool');
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw invalid(`${at}.input_schema`, 'a JSON schema such as {"type": "object"}');
  if (description !== undefined && description !== null && typeof description !== 'string')
    throw invalid(`${at}.description`, 'a string');
  return {
    type: 'function',
    function: {
      name: request.toolNames.short(name),
      ...(typeof description === 'string' ? { description } : {}),
      parameters: schema,
      ...(typeof strict === 'boolean' ? { strict: strict && isStrict(schema) } : {}),
    },
  };
}

/** A tool of type `mcp`, which names a service of this gateway. */
function ownService({ service, allowed_tools: allowed }: JsonObject, at: string): ChatTool {
  if (typeof service !== 'string' || service === '') throw invalid(`${at}.service`, 'the name of a tool service');
  return { type: 'mcp', service, ...allowedTools(allowed, `${at}.allowed_tools`) };
}

/**
 * The tools of an MCP server that the request lists, by an `mcp_toolset`. Throws GatewayError unless the server is a
 * service of this gateway.
 */
function ofToolset(
  { mcp_server_name: name, configs, default_config: base }: JsonObject,
  at: string,
  { mcp_servers: servers }: MessagesBody,
  request: WireRequest,
): ChatTool {
  const server = servers?.find((one) => one['name'] === name);
  if (server === undefined) throw invalid(`${at}.mcp_server_name`, 'the name of one of mcp_servers');
  const service = serviceOf(server, request);
  const switched = Object.entries((configs ?? {}) as Record<string, JsonObject | null>);
  const namesWhere = (enabled: boolean) =>
    switched.filter(([, config]) => config?.['enabled'] === enabled).map(([tool]) => tool);
  if ((base as JsonObject | null | undefined)?.['enabled'] === false)
    return { type: 'mcp', service, allowed_tools: namesWhere(true) };
  const disallowed = namesWhere(false);
  return { type: 'mcp', service, ...(disallowed.length === 0 ? {} : { disallowed_tools: disallowed }) };
}

/**
 * The tools of the MCP servers that no `mcp_toolset` names. The first beta of the API had no toolsets, and the server
 * itself had a `tool_configuration`. Throws GatewayError for a server that is no service of this gateway.
 */
function withoutToolset({ tools, mcp_servers: servers }: MessagesBody, request: WireRequest): ChatTool[] {
  const serverNames = new Set((tools ?? []).map(({ type, mcp_server_name: name }) => type === 'mcp_toolset' && name));
  return (servers ?? []).flatMap((server, index) => {
    if (serverNames.has(server['name'])) return [];
    const service = serviceOf(server, request);
    const configuration = server['tool_configuration'] as JsonObject | null | undefined;
    if (configuration?.['enabled'] === false) return [];
    const at = `mcp_servers[${index}].tool_configuration.allowed_tools`;
    return [{ type: 'mcp', service, ...allowedTools(configuration?.['allowed_tools'], at) }];
  });
}

function serviceOf({ name, url }: JsonObject, request: WireRequest): string {
  const service = typeof url === 'string' ? request.serviceAt(url) : null;
  if (service !== null) return service;
  throw new GatewayError(
    'unprocessable',
    `The gateway calls only tools of its own services: the url of the MCP server ${String(name).slice(0, 64)} must be <this gateway>/mcp/<service>`,
    { param: 'mcp_servers' },
  );
}

function allowedTools(allowed: unknown, at: string): { allowed_tools?: string[] } {
  if (allowed === undefined || allowed === null) return {};
  if (!Array.isArray(allowed) || allowed.length > 256 || allowed.some((one) => typeof one !== 'string' || one === ''))
    throw invalid(at, 'an array of at most 256 names of tools');
  return { allowed_tools: allowed as string[] };
}

/** A tool that Anthropic defines and the client runs. `prefix` is the beginning of its type; its version follows. */
interface ClientTool {
  readonly prefix: string;
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

const text = { type: 'string' };
const point = {
  type: 'array',
  items: { type: 'integer' },
  minItems: 2,
  maxItems: 2,
  description: 'x and y in pixels.',
};

const COMPUTER_ACTIONS = (
  'key type mouse_move left_click left_click_drag right_click middle_click double_click triple_click screenshot ' +
  'cursor_position left_mouse_down left_mouse_up scroll hold_key wait zoom'
).split(' ');

/** Models of Anthropic know the schemas of these tools. Other models have to be given the schemas. */
export const CLIENT_TOOLS: readonly ClientTool[] = [
  {
    prefix: 'bash_',
    name: 'bash',
    description: 'Run a command in a bash shell that stays open between calls.',
    parameters: {
      type: 'object',
      properties: {
        command: { ...text, description: 'The command. Required unless restart is set.' },
        restart: { type: 'boolean', description: 'Start a new shell.' },
      },
    },
  },
  {
    prefix: 'text_editor_',
    name: 'str_replace_based_edit_tool',
    description: 'View, create and edit text files.',
    parameters: {
      type: 'object',
      required: ['command', 'path'],
      properties: {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert'] },
        path: { ...text, description: 'Path of the file or folder.' },
        view_range: { ...point, description: 'With view: the first and the last line. -1 is the end.' },
        file_text: { ...text, description: 'With create: the content.' },
        old_str: { ...text, description: 'With str_replace: the text to replace, exactly as it stands there once.' },
        new_str: { ...text, description: 'With str_replace: the new text.' },
        insert_line: { type: 'integer', description: 'With insert: the line to insert after. 0 is the beginning.' },
        insert_text: { ...text, description: 'With insert: the text.' },
      },
    },
  },
  {
    prefix: 'computer_',
    name: 'computer',
    description: 'Use a screen, a mouse and a keyboard.',
    parameters: {
      type: 'object',
      required: ['action'],
      properties: {
        action: {
          type: 'string',
          enum: COMPUTER_ACTIONS,
        },
        coordinate: point,
        start_coordinate: point,
        text: { ...text, description: 'Text to type, or keys to press.' },
        scroll_direction: { type: 'string', enum: ['up', 'down', 'left', 'right'] },
        scroll_amount: { type: 'integer' },
        duration: { type: 'number', description: 'Seconds.' },
        region: { type: 'array', items: { type: 'integer' }, minItems: 4, maxItems: 4, description: 'With zoom.' },
      },
    },
  },
  {
    prefix: 'memory_',
    name: 'memory',
    description: 'Read and write files below /memories, which stay between conversations.',
    parameters: {
      type: 'object',
      required: ['command'],
      properties: {
        command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
        path: text,
        view_range: { ...point, description: 'With view: the first and the last line.' },
        file_text: text,
        old_str: text,
        new_str: text,
        insert_line: { type: 'integer' },
        insert_text: text,
        old_path: text,
        new_path: text,
      },
    },
  },
];
