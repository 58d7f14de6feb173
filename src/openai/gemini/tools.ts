import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import type { ChatTool } from '../chat/chat-schema.ts';
import { invalid } from '../translated/chat-turns.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import type { GeminiBody } from './schema.ts';
import { toJsonSchema } from './json-schema.ts';

interface GeminiChatTools {
  readonly tools: readonly ChatTool[];
  readonly choice: unknown;
}

export const runsHere = ({ tools }: Pick<GeminiBody, 'tools'>, request: WireRequest): boolean =>
  (tools ?? []).some((tool) => serversOf(tool).some((server) => serviceOf(server, request) !== null));

/** Members of a tool that no provider but Google can serve. */
const OURS: ReadonlySet<string> = new Set(['functionDeclarations', 'mcpServers']);

/**
 * The tools of a request. Throws GatewayError `invalid_request`, and `unprocessable` for a tool that runs only at
 * Google: an answer without it, such as one without a search, would not be the one that was asked for.
 */
export function toChatTools({ tools, toolConfig }: GeminiBody, request: WireRequest): GeminiChatTools {
  const chatTools: ChatTool[] = [];
  (tools ?? []).forEach((tool, index) => {
    const at = `tools[${index}]`;
    const foreign = Object.keys(tool).find((name) => !OURS.has(name) && (tool[name] ?? null) !== null);
    if (foreign !== undefined)
      throw new GatewayError(
        'unprocessable',
        `${at}.${foreign} runs only at Google, and no provider of this model supports its API. Send functionDeclarations, or mcpServers with a service of this gateway`,
        { param: at },
      );
    chatTools.push(...functionsOf(tool, at, request.toolNames));
    chatTools.push(...serversOf(tool).map((server, place) => toMcpTool(server, `${at}.mcpServers[${place}]`, request)));
  });
  const { mode, allowed } = callingOf(toolConfig);
  if (chatTools.length === 0) return { tools: [], choice: undefined };
  return choose(chatTools, mode, allowed, request.toolNames);
}

function functionsOf(
  { functionDeclarations: declarationList }: JsonObject,
  at: string,
  names: WireRequest['toolNames'],
): ChatTool[] {
  if (declarationList === undefined || declarationList === null) return [];
  if (!Array.isArray(declarationList)) throw invalid(`${at}.functionDeclarations`, 'an array');
  return (declarationList as readonly unknown[]).map((one, index) => {
    const here = `${at}.functionDeclarations[${index}]`;
    if (!isObject(one) || typeof one['name'] !== 'string' || one['name'] === '' || one['name'].length > NAME_MAX)
      throw invalid(`${here}.name`, `the name of the function, of at most ${NAME_MAX} characters`);
    const { name, description, parameters, parametersJsonSchema: schema } = one;
    if (description !== undefined && description !== null && typeof description !== 'string')
      throw invalid(`${here}.description`, 'a string');
    const chosen = schema ?? toJsonSchema(parameters) ?? null;
    if (chosen !== null && !isObject(chosen))
      throw invalid(`${here}.parameters`, 'a schema such as {"type": "OBJECT"}');
    return {
      type: 'function',
      function: {
        name: names.short(name),
        ...(typeof description === 'string' ? { description } : {}),
        parameters: chosen ?? NO_PARAMETERS,
      },
    };
  });
}

const NAME_MAX = 256;
const NO_PARAMETERS = { type: 'object', properties: {} };

const serversOf = ({ mcpServers: servers }: JsonObject): readonly JsonObject[] =>
  Array.isArray(servers) ? (servers as readonly unknown[]).filter(isObject) : [];

const serviceOf = ({ streamableHttpTransport: transport }: JsonObject, request: WireRequest): string | null => {
  const url = isObject(transport) ? transport['url'] : null;
  return typeof url === 'string' ? request.serviceAt(url) : null;
};

function toMcpTool(server: JsonObject, at: string, request: WireRequest): ChatTool {
  const service = serviceOf(server, request);
  if (service !== null) return { type: 'mcp', service };
  throw new GatewayError(
    'unprocessable',
    `The gateway calls only tools of its own services: ${at}.streamableHttpTransport.url must be <this gateway>/mcp/<service>`,
    { param: at },
  );
}

/** The modes of calling functions, and what each is in a chat request. */
const MODES: Readonly<Record<string, 'auto' | 'required' | 'none'>> = {
  MODE_UNSPECIFIED: 'auto',
  AUTO: 'auto',
  VALIDATED: 'auto',
  ANY: 'required',
  NONE: 'none',
};

type Mode = 'auto' | 'required' | 'none' | null;

/** `mode`: null if the request names none. `allowed`: null for all functions. */
function callingOf(toolConfig: GeminiBody['toolConfig']): {
  readonly mode: Mode;
  readonly allowed: readonly string[] | null;
} {
  const calling = toolConfig?.['functionCallingConfig'] ?? null;
  if (calling === null) return { mode: null, allowed: null };
  const at = 'toolConfig.functionCallingConfig';
  if (!isObject(calling)) throw invalid(at, 'an object');
  const { mode, allowedFunctionNames: names } = calling;
  const known = mode === undefined || mode === null ? null : MODES[String(mode)];
  if (known === undefined) throw invalid(`${at}.mode`, 'one of AUTO, ANY, NONE, VALIDATED');
  if (names === undefined || names === null) return { mode: known, allowed: null };
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string'))
    throw invalid(`${at}.allowedFunctionNames`, 'an array of names of functions');
  return { mode: known, allowed: names.length === 0 ? null : (names as readonly string[]) };
}

/** A chat request names one function or all. So functions that are not allowed are left out. */
function choose(
  tools: readonly ChatTool[],
  mode: Mode,
  allowed: readonly string[] | null,
  names: WireRequest['toolNames'],
): GeminiChatTools {
  if (mode === null) return { tools, choice: undefined };
  if (allowed === null || mode === 'none') return { tools, choice: mode };
  const short = new Set(allowed.map((name) => names.short(name)));
  const remainingTools = tools.filter(({ function: fn }) => fn === undefined || short.has(fn.name));
  const only = remainingTools.length === 1 && mode === 'required' ? remainingTools[0]!.function : undefined;
  if (remainingTools.length === 0)
    throw invalid('toolConfig.functionCallingConfig.allowedFunctionNames', 'names of functions in tools');
  return {
    tools: remainingTools,
    choice: only === undefined ? mode : { type: 'function', function: { name: only.name } },
  };
}
