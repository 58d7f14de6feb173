import { setTimeout as pause } from 'node:timers/promises';
import { BOUNDS, foreignObject, isObject, type JsonObject } from '#wire';
import type { CommandTarget, HttpTarget, Service } from '#config';
import type { Log } from '../log.ts';
import { FORMS, keyOf, readableItem } from '#mcp/lists';
import { envelope, MODERN } from '../stdio/era.ts';
import { startServer } from '../stdio/supervisor.ts';
import { ask, eventData, jsonObject, mustSucceed, ProbeFailure, type Check } from './ask.ts';

type ToolService = Extract<Service, { primitive: 'tool' }>;

export interface CommandRun {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly log: Log;
}

/** The newest revision that begins with `initialize`. */
const LEGACY = '2025-11-25';
const STOP = { termMs: 1_000, killMs: 5_000 };
const LIST_MS = 30_000;

/**
 * Checks that an MCP server can be initialised and lists its tools. Tools that have their own price in the file must be
 * in the list.
 */
export function toolCheck(service: ToolService, target: HttpTarget | CommandTarget, run: CommandRun): Check {
  return {
    kind: 'tool',
    name: service.name,
    async run() {
      const result =
        target.kind === 'http' ? await listByHttp(target, run.version) : await listByCommand(service.name, target, run);
      const { tools, nextCursor } = result;
      if (!Array.isArray(tools)) throw new ProbeFailure('tools/list has no list of tools');
      const names = new Set(tools.map(nameOf));
      const missing = nextCursor === undefined ? Object.keys(service.variants).filter((name) => !names.has(name)) : [];
      if (missing.length > 0)
        throw new ProbeFailure(`the file sets prices for tools that it does not have: ${missing.join(', ')}`);
      const faults = tools.map(faultOf);
      const broken = faults.filter((fault) => fault !== null);
      const readable = new Set(tools.filter((_, nth) => faults[nth] === null).map(nameOf));
      const isOne = readable.size === 1 && nextCursor === undefined;
      const listed = `${readable.size}${nextCursor === undefined ? '' : ' and more'} ${isOne ? 'tool' : 'tools'}`;
      return broken.length === 0 ? listed : `${listed}; left out, because clients cannot read them: ${toldOf(broken)}`;
    },
  };
}

const nameOf = (tool: unknown): string | null => keyOf('tools/list', tool);

/** The tool and what is wrong with it, if the gateway would leave it out of its lists. null otherwise. */
function faultOf(tool: unknown): string | null {
  for (const form of FORMS) {
    const read = readableItem('tools/list', form, JSON.stringify(tool), tool);
    if ('fault' in read) return `${nameOf(tool) ?? 'one without a name'} (${read.fault})`;
  }
  return null;
}

const TOLD = 5;
const toldOf = (broken: readonly string[]): string =>
  `${broken.slice(0, TOLD).join(', ')}${broken.length > TOLD ? ` and ${broken.length - TOLD} more` : ''}`;

async function listByHttp({ url, apiKey }: HttpTarget, version: string): Promise<JsonObject> {
  const post = (message: object, headers: Readonly<Record<string, string>> = {}) =>
    ask({
      method: 'POST',
      url,
      apiKey,
      headers: { accept: 'application/json, text/event-stream', ...headers },
      body: { jsonrpc: '2.0', ...message },
    });
  const clientInfo = { name: 'tollgate', version };
  const first = await post({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: LEGACY, capabilities: {}, clientInfo },
  });
  // The gateway also serves a server that only knows tools/list and tools/call.
  const listedBare = async (): Promise<JsonObject | null> => {
    const listed = await post({ id: 3, method: 'tools/list' });
    return listed.status < 300 && hasTools(listed.text) ? resultOf(listed.text, 3, 'tools/list') : null;
  };
  if (first.status === 400 || first.status === 404) {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/list' };
    const listed = await post({ id: 1, method: 'tools/list', params: { _meta: meta } }, headers);
    if (listed.status >= 400) {
      const bare = await listedBare();
      if (bare !== null) return bare;
      // If the server knows neither, its answer to `initialize` is the more useful error.
      mustSucceed(first);
    }
    return resultOf(listed.text, 1, 'tools/list');
  }
  mustSucceed(first);
  if (isRefusal(first.text)) {
    const bare = await listedBare();
    if (bare !== null) return bare;
  }
  const { protocolVersion } = resultOf(first.text, 1, 'initialize');
  const session = first.headers['mcp-session-id'];
  const headers = {
    'mcp-protocol-version': String(protocolVersion),
    ...(typeof session === 'string' ? { 'mcp-session-id': session } : {}),
  };
  await post({ method: 'notifications/initialized' }, headers);
  const listed = await post({ id: 2, method: 'tools/list' }, headers);
  mustSucceed(listed);
  // Ends the session. Errors don't matter, because some servers don't support this.
  if (typeof session === 'string') await ask({ method: 'DELETE', url, apiKey, headers }).catch(() => {});
  return resultOf(listed.text, 2, 'tools/list');
}

/** Tells whether the answer is a JSON-RPC error. */
const isRefusal = (text: string): boolean => parsed(text)?.['error'] !== undefined;
const hasTools = (text: string): boolean =>
  Array.isArray((parsed(text)?.['result'] as JsonObject | undefined)?.['tools']);

const parsed = (text: string) => foreignObject(text, BOUNDS.probed);

/** Finds the response with this id, in a JSON reply or in a stream of events. */
function resultOf(text: string, id: number, method: string): JsonObject {
  const messages = (text.trimStart().startsWith('{') ? [text] : eventData(text)).map((each) =>
    jsonObject(each, `the answer to ${method}`),
  );
  const response = messages.find((message) => message['id'] === id);
  if (!response) throw new ProbeFailure(`there is no response to ${method}`);
  const { result, error } = response;
  if (isObject(result)) return result;
  throw new ProbeFailure(`${method} is refused: ${String((error as { message?: unknown } | undefined)?.message)}`);
}

async function listByCommand(
  service: string,
  target: CommandTarget,
  { env, version, log }: CommandRun,
): Promise<JsonObject> {
  const run = startServer({ service, target, env, version, log });
  const { pipe, era } = await run.ready.catch(async (error: Error) => {
    // How the process ended is more useful than "it did not answer".
    const how = await Promise.race([run.ended, pause(0, null)]);
    run.kill();
    throw new ProbeFailure(how === null ? error.message : `the process ${how}`);
  });
  const late = new AbortController();
  try {
    const query = pipe.query('tools/list', era.kind === 'modern' ? { _meta: envelope(version) } : undefined);
    const answer = await Promise.race([query, pause(LIST_MS, undefined, { signal: late.signal })]);
    if (answer === undefined) throw new ProbeFailure(`no response to tools/list within ${LIST_MS / 1000} s`);
    if (answer === null) throw new ProbeFailure('the process ended before it listed its tools');
    return resultOf(JSON.stringify({ ...answer, id: 1 }), 1, 'tools/list');
  } finally {
    late.abort();
    await run.stop(STOP);
  }
}
