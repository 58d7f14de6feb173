import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import { invalid } from '../translated/chat-turns.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import type { ChatTool } from '../chat/chat-schema.ts';
import type { ResponsesBody } from './schema.ts';

export interface ResponsesToolOptions {
  readonly request: WireRequest;
}

interface ResponsesChatTools {
  readonly tools: ChatTool[];
  readonly choice: unknown;
  /** Types of tools that no provider gets. */
  readonly dropped: readonly string[];
}

/** Whether the gateway calls a tool of a request. Tools are in the request, in its items, or in namespaces of these. */
export function runsHere({ tools, input }: ResponsesBody, request: WireRequest): boolean {
  const anyHere = (toolChoice: unknown): boolean =>
    Array.isArray(toolChoice) &&
    (toolChoice as unknown[]).some(
      (tool) =>
        isObject(tool) && ((tool['type'] === 'mcp' && serviceOf(tool, request) !== null) || anyHere(tool['tools'])),
    );
  return anyHere(tools) || anyHere(input);
}

/** The one argument of a custom tool. */
export const CONTENT = 'content';
const NESTED_MAX = 4;
const TOOLS_MAX = 1024;

/** `toolList`: the tools of the request and of its items. Throws GatewayError. */
export function toChatTools(
  toolList: readonly JsonObject[],
  { tool_choice: choice }: ResponsesBody,
  options: ResponsesToolOptions,
): ResponsesChatTools {
  const dropped: string[] = [];
  const tools: ChatTool[] = [];
  const add = (tool: unknown, at: string, namespace: string | null, depth: number): void => {
    if (!isObject(tool)) throw invalid(at, 'an object with a type');
    if (tool['type'] === 'namespace') {
      const { name, tools: inner } = tool;
      if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'the name of the namespace');
      if (!Array.isArray(inner) || depth > NESTED_MAX) throw invalid(`${at}.tools`, 'an array of tools');
      const full = namespace === null ? name : `${namespace}__${name}`;
      (inner as readonly unknown[]).forEach((one, index) => add(one, `${at}.tools[${index}]`, full, depth + 1));
      return;
    }
    if (tools.length + dropped.length === TOOLS_MAX) throw invalid('tools', `at most ${TOOLS_MAX} tools in all`);
    const read = toChatTool(tool, at, namespace, options);
    if (read === null) dropped.push(String(tool['type']));
    else tools.push(read);
  };
  toolList.forEach((tool, index) => add(tool, `tools[${index}]`, null, 0));
  const { tools: allowed, choice: chosen } = chatChoice(choice, tools, dropped, options.request.toolNames);
  return { tools: allowed, choice: allowed.length > 0 ? chosen : undefined, dropped };
}

/** Returns null for a tool that runs at OpenAI. */
function toChatTool(
  tool: JsonObject,
  at: string,
  namespace: string | null,
  { request }: ResponsesToolOptions,
): ChatTool | null {
  const { type, name, description, parameters, strict, format } = tool;
  if (type === 'mcp') return ofService(tool, at, request);
  if (type !== 'function' && type !== 'custom') return null;
  if (typeof name !== 'string' || name === '' || name.length > 256) throw invalid(`${at}.name`, 'the name of the tool');
  const custom = type === 'custom';
  const descriptionText = custom ? freeform(description, format as JsonObject | null | undefined) : description;
  return {
    type: 'function',
    function: {
      name: request.toolNames.short(name, namespace, custom),
      ...(typeof descriptionText === 'string' ? { description: descriptionText } : {}),
      parameters: custom
        ? { type: 'object', properties: { [CONTENT]: { type: 'string' } }, required: [CONTENT] }
        : (parameters ?? { type: 'object', properties: {} }),
      ...(typeof strict === 'boolean' && !custom ? { strict } : {}),
    },
  };
}

/** The description of a custom tool as a function: the text, and its grammar, go into one argument. */
function freeform(description: unknown, format: JsonObject | null | undefined): string {
  const grammar = format?.['definition'];
  const rules =
    typeof grammar === 'string' ? `\n\n${CONTENT} follows this ${String(format?.['syntax'])} grammar:\n${grammar}` : '';
  return `${typeof description === 'string' ? description : ''}\n\nPut the whole input into ${CONTENT}.${rules}`.trim();
}

/** The service of this gateway that a tool belongs to; null for another server. */
const serviceOf = ({ service: own, server_url: url }: JsonObject, request: WireRequest) =>
  typeof own === 'string' ? own : typeof url === 'string' ? request.serviceAt(url) : null;

function ofService(tool: JsonObject, at: string, request: WireRequest): ChatTool {
  const { allowed_tools: allowed } = tool;
  const service = serviceOf(tool, request);
  if (service === null || service === '')
    throw new GatewayError(
      'unprocessable',
      `The gateway calls only tools of its own services: ${at}.server_url must be <this gateway>/mcp/<service>`,
      { param: `${at}.server_url` },
    );
  const names = toolNames(allowed, `${at}.allowed_tools`);
  refuseApproval(tool, names, at);
  return { type: 'mcp', service, ...(names === null ? {} : { allowed_tools: [...names] }) };
}

/** The names in an array, or in the `tool_names` of an object; null without them. Throws GatewayError. */
function toolNames(namesValue: unknown, at: string): readonly string[] | null {
  if (namesValue === undefined || namesValue === null) return null;
  // Ignoring it would allow tools that the client excludes.
  if (isObject(namesValue) && namesValue['read_only'] === true)
    throw new GatewayError(
      'unprocessable',
      `The gateway selects tools only by their names: leave out ${at}.read_only, and name the tools in ${at}.tool_names`,
      { param: `${at}.read_only` },
    );
  const names: unknown = Array.isArray(namesValue) ? namesValue : (namesValue as JsonObject)['tool_names'];
  if (!Array.isArray(names) || names.length > 256 || names.some((one) => typeof one !== 'string' || one === ''))
    throw invalid(at, 'an array of at most 256 names of tools');
  return names as string[];
}

/**
 * Throws GatewayError if the client wants to approve calls of these tools. The gateway keeps no responses, so it cannot
 * wait for an approval. `names`: the allowed tools; null for all.
 */
function refuseApproval({ require_approval: approval }: JsonObject, names: readonly string[] | null, at: string): void {
  if (approval === undefined || approval === null || approval === 'never') return;
  const never = isObject(approval) ? toolNames(approval['never'], `${at}.require_approval.never`) : null;
  if (never !== null && names !== null && names.every((name) => never.includes(name))) return;
  throw new GatewayError(
    'unprocessable',
    `The gateway cannot ask for an approval before it calls a tool. Set ${at}.require_approval to "never", or allow only tools that need none`,
    { param: `${at}.require_approval` },
  );
}

function chatChoice(
  choice: ResponsesBody['tool_choice'],
  tools: ChatTool[],
  dropped: readonly string[],
  names: WireRequest['toolNames'],
): { readonly tools: ChatTool[]; readonly choice: unknown } {
  if (choice === undefined || choice === null) return { tools, choice: undefined };
  if (typeof choice === 'string') {
    if (!['auto', 'none', 'required'].includes(choice))
      throw invalid('tool_choice', 'auto, none, required or an object');
    return { tools, choice };
  }
  const { type, name, namespace, mode, tools: allowed } = choice;
  const short = (one: JsonObject) =>
    names.short(String(one['name']), typeof one['namespace'] === 'string' ? one['namespace'] : null);
  if (type === 'allowed_tools') {
    if (!Array.isArray(allowed)) throw invalid('tool_choice.tools', 'an array of tools');
    const allowedNames = new Set((allowed as readonly JsonObject[]).map(short));
    const remainingTools = tools.filter((tool) => tool.type === 'mcp' || allowedNames.has(tool.function!.name));
    return { tools: remainingTools, choice: mode === 'required' ? 'required' : 'auto' };
  }
  if ((type === 'function' || type === 'custom') && typeof name === 'string')
    return { tools, choice: { type: 'function', function: { name: short({ name, namespace }) } } };
  if (type === 'mcp') return { tools, choice: 'required' };
  throw new GatewayError(
    'unprocessable',
    dropped.includes(String(type))
      ? `tool_choice names ${String(type)}, which runs only at OpenAI`
      : 'tool_choice.type must be function, custom, allowed_tools or mcp',
    { param: 'tool_choice' },
  );
}
