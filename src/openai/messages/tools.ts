import { GatewayError } from '#wire';
import type { ChatTool } from '../chat/chat-schema.ts';
import type { ToolNames } from '../translated/tool-names.ts';
import { CLIENT_TOOLS } from './client-tools.ts';
import { ofToolset, ownService, type ServiceAt, withoutToolset } from './mcp-tools.ts';
import type { Json, MessagesBody } from './messages-schema.ts';
import { invalid } from './text-of-block.ts';

interface ChatTools {
  readonly tools: ChatTool[];
  readonly choice: unknown;
  readonly parallel: boolean | undefined;
  /** Names of the tools that no provider gets, as the client wrote them. */
  readonly dropped: readonly string[];
}

export interface ToolOptions {
  readonly names: ToolNames;
  readonly serviceAt: ServiceAt;
}

/** Whether the gateway calls a tool of a request, or is named as an MCP server. */
export const runsHere = (
  { tools, mcp_servers: servers }: MessagesBody,
  { serviceAt }: Pick<ToolOptions, 'serviceAt'>,
) =>
  (tools ?? []).some(({ type }) => type === 'mcp') ||
  (servers ?? []).some(({ url }) => typeof url === 'string' && serviceAt(url) !== null);

/** Claude Code's placeholder for tools that it names later. It has no meaning here. */
const PLACEHOLDER = 'DeferredToolPlaceholder';

/**
 * The tools of a request. Throws GatewayError `invalid_request`, or `unprocessable` if `tool_choice` forces a
 * dropped tool.
 */
export function toChatTools(body: MessagesBody, options: ToolOptions): ChatTools {
  const dropped: string[] = [];
  const tools: ChatTool[] = [];
  (body.tools ?? []).forEach((tool, index) => {
    const read = toChatTool(tool, `tools[${index}]`, body, options);
    if (read !== null) tools.push(read);
    else if (tool['name'] !== PLACEHOLDER) dropped.push(String(tool['name'] ?? tool['type']));
  });
  tools.push(...withoutToolset(body, options.serviceAt));
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
    choice: choice && tools.length > 0 ? chatChoice(choice, options.names) : undefined,
    parallel: choice?.['disable_parallel_tool_use'] === true && tools.length > 0 ? false : undefined,
    dropped,
  };
}

function chatChoice({ type, name }: Json, names: ToolNames): unknown {
  if (type === 'any') return 'required';
  if (type !== 'tool') return type;
  if (typeof name !== 'string' || name === '') throw invalid('tool_choice.name', 'the name of a tool');
  return { type: 'function', function: { name: names.short(name) } };
}

/** Returns null for a tool that runs at Anthropic. */
function toChatTool(tool: Json, at: string, body: MessagesBody, options: ToolOptions): ChatTool | null {
  const { type, name, description, input_schema: schema, strict } = tool;
  if (type === 'mcp') return ownService(tool, at);
  if (type === 'mcp_toolset') return ofToolset(tool, at, body, options.serviceAt);
  if (name === PLACEHOLDER) return null;
  if (schema === undefined && typeof type === 'string' && type !== 'custom') {
    const family = CLIENT_TOOLS.find(({ prefix }) => type.startsWith(prefix));
    if (family === undefined) return null;
    const named = typeof name === 'string' ? name : family.name;
    return {
      type: 'function',
      function: { name: options.names.short(named), description: family.description, parameters: family.parameters },
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
      name: options.names.short(name),
      ...(typeof description === 'string' ? { description } : {}),
      parameters: schema,
      ...(typeof strict === 'boolean' ? { strict } : {}),
    },
  };
}
