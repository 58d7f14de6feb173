import { hash } from 'node:crypto';
import { GatewayError } from '#errors';
import { printable } from '#security';
import { unknownMember } from '#http';
import { createPace, getOrInsert, OWN_TURN_BYTES, ownTurn } from '#wire';
import type { ChatTool } from '../chat/chat-schema.ts';

/** A tool as the model sees it. All of it comes from the tool's server. */
export interface ToolFacts {
  readonly name: string;
  readonly description: string;
  /** Parses it, so it is called for those tools that a request takes. */
  inputSchema(): Readonly<Record<string, unknown>>;
}

export interface ServerTool {
  readonly service: string;
  readonly tool: string;
}

/**
 * The tools of a request: the client's functions, and the tools that the gateway calls, by the names that the model
 * gets for them.
 */
export interface ServerTools {
  /** All tools, as the model sees them. */
  readonly all: readonly ChatTool[];
  /** Only the client's functions. */
  readonly own: readonly ChatTool[];
  readonly toolsByName: ReadonlyMap<string, ServerTool>;
}

/** Most functions that large models take. */
const TOOLS_MAX = 128;
const SERVICES_MAX = 32;
const TOOL_BYTES_MAX = 1024 * 1024;
/** The longest name of a function that models' APIs take. */
const NAME_MAX = 64;
const HASH_LENGTH = 8;

/**
 * Looks up the tools of the services that a request names. Rejects with GatewayError `not_found` for an unknown
 * service, `no_provider_healthy` for one whose tools are not known, and `invalid_request` for a tool that the service
 * does not have, or for more tools than a model takes.
 */
export async function resolveServerTools(
  tools: readonly ChatTool[],
  toolsOf: (service: string) => Promise<readonly ToolFacts[]>,
): Promise<ServerTools> {
  const own = tools.filter(({ type }) => type !== 'mcp');
  const takenNames = new Set(own.flatMap(({ function: ownFunction }) => (ownFunction ? [ownFunction.name] : [])));
  const toolsByName = new Map<string, ServerTool>();
  const all: ChatTool[] = [...own];
  const { requestedTools, count } = await select(tools, toolsOf);
  if (own.length + count > TOOLS_MAX)
    throw invalid(
      `There are ${own.length + count} tools, but a model takes at most ${TOOLS_MAX}. Select some with allowed_tools`,
      'tools',
    );
  let bytes = 0;
  const pace = createPace(OWN_TURN_BYTES);
  for (const { service, facts } of requestedTools) {
    const key = JSON.stringify([service, facts.name]);
    const name = functionName(`${service}__${facts.name}`, key, takenNames);
    takenNames.add(name);
    toolsByName.set(name, { service, tool: facts.name });
    const shownTool = { name, description: facts.description, parameters: facts.inputSchema() };
    const size = Buffer.byteLength(JSON.stringify(shownTool));
    bytes += size;
    if (bytes > TOOL_BYTES_MAX)
      throw invalid(
        `The descriptions of the tools have more than ${TOOL_BYTES_MAX} bytes. Select fewer tools with allowed_tools`,
        'tools',
      );
    all.push({ type: 'function', function: shownTool });
    await pace(size);
  }
  return { all, own, toolsByName };
}

const MEMBERS: readonly string[] = ['type', 'service', 'allowed_tools', 'disallowed_tools'];

interface RequestedTool {
  readonly service: string;
  readonly facts: ToolFacts;
}

/** The tools that a request asks for, up to the most that a model takes, and how many there are. */
async function select(
  tools: readonly ChatTool[],
  toolsOf: (service: string) => Promise<readonly ToolFacts[]>,
): Promise<{ readonly requestedTools: readonly RequestedTool[]; readonly count: number }> {
  const mcpTools = tools.flatMap((tool, index) => (tool.type === 'mcp' ? [{ tool, at: `tools[${index}]` }] : []));
  if (mcpTools.length > SERVICES_MAX)
    throw invalid(`tools names ${mcpTools.length} services, but at most ${SERVICES_MAX} are allowed`, 'tools');
  for (const { tool, at } of mcpTools) {
    // A misspelt `allowed_tools` or `disallowed_tools` must not allow all tools.
    const stranger = Object.keys(tool).find((key) => !MEMBERS.includes(key));
    if (stranger !== undefined)
      throw invalid(unknownMember(`${at}.${printable(stranger, 64)}`, MEMBERS), `${at}.${printable(stranger, 64)}`);
  }
  const listed = await Promise.all(mcpTools.map(({ tool, at }) => listOf(tool.service!, `${at}.service`, toolsOf)));
  const requestedTools: RequestedTool[] = [];
  const seen = new Map<string, Set<string>>();
  let count = 0;
  for (const [index, { tool, at }] of mcpTools.entries()) {
    const { allowed_tools: allowed, disallowed_tools: disallowed } = tool;
    const service = tool.service!;
    const all = listed[index]!;
    if (all.length > TOOLS_MAX) await ownTurn();
    const allowedHere = namedIn(all, service, allowed, `${at}.allowed_tools`) ?? all;
    const notHere = new Set(namedIn(all, service, disallowed, `${at}.disallowed_tools`));
    const names = getOrInsert(seen, service, () => new Set<string>());
    for (const facts of allowedHere) {
      if (notHere.has(facts) || names.has(facts.name)) continue;
      names.add(facts.name);
      count++;
      // More are refused.
      if (count <= TOOLS_MAX) requestedTools.push({ service, facts });
    }
  }
  return { requestedTools, count };
}

/** The tools with these names; null without names. Throws GatewayError for a name that the service does not have. */
function namedIn(
  all: readonly ToolFacts[],
  service: string,
  names: readonly string[] | null | undefined,
  at: string,
): readonly ToolFacts[] | null {
  if (names === null || names === undefined) return null;
  const byName = new Map(all.map((facts) => [facts.name, facts]));
  return names.map((name, place) => {
    const facts = byName.get(name);
    if (facts !== undefined) return facts;
    const known = all.slice(0, 20).map((one) => one.name.slice(0, 64));
    throw invalid(
      `${service} has no tool ${JSON.stringify(name.slice(0, 64))}; it has ${known.join(', ') || 'none'}`,
      `${at}[${place}]`,
    );
  });
}

async function listOf(
  service: string,
  param: string,
  toolsOf: (service: string) => Promise<readonly ToolFacts[]>,
): Promise<readonly ToolFacts[]> {
  try {
    return await toolsOf(service);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    throw new GatewayError(error.code, error.message, { param, retryAfterS: error.retryAfterS, cause: error });
  }
}

/**
 * A name of the characters, and of the length, that all models' APIs take. It is the same each time, so that a client
 * can continue a conversation. `key`: what no other tool has, for a name that is too long or taken.
 */
export function functionName(name: string, key: string, takenNames: Pick<ReadonlySet<string>, 'has'>): string {
  const plain = name.replace(/[^a-zA-Z0-9_-]/g, '_');
  if (plain !== '' && plain.length <= NAME_MAX && !takenNames.has(plain)) return plain;
  const digest = hash('sha256', key);
  for (let from = 0; ; from++) {
    const short = `${plain.slice(0, NAME_MAX - HASH_LENGTH - 1)}_${digest.slice(from, from + HASH_LENGTH)}`;
    if (!takenNames.has(short)) return short;
  }
}

const invalid = (message: string, param: string) => new GatewayError('invalid_request', message, { param });
