import { isObject, type JsonObject } from '#wire';
import { storedAtProvider } from '../chat/request/refusals.ts';
import type { Passthrough } from './passthrough.ts';

/** Members that refer to something that a provider stores for its account. */
const NAMES: ReadonlySet<string> = new Set([
  'file_id',
  'file_ids',
  'vector_store_ids',
  'container',
  'container_id',
  'fileSearchStoreNames',
]);

/** Members that are data of a model or a client, or that only cite the source of a text. They are not searched. */
const DATA: ReadonlySet<string> = new Set([
  'arguments',
  'annotations',
  'citations',
  'input_schema',
  'parameters',
  'parametersJsonSchema',
  'responseJsonSchema',
  'responseSchema',
  'schema',
  'args',
  'response',
]);
/** Calls of tools whose `input` is data. */
const CALLS: ReadonlySet<unknown> = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use']);
/** Results that name files which a tool made. The model sees only the names. */
const MADE = /code_execution_output$/;

/**
 * Throws GatewayError `invalid_request` for a request that refers to a file, a store, a container or a skill in the
 * provider's account, because all consumers share that account. A part that the provider gets as plain text
 * (`isRetold`) may name one.
 */
export function refuseKeptAtProvider(
  requestBody: JsonObject,
  { prompt, isRetold }: Pick<Passthrough, 'prompt' | 'isRetold'>,
): void {
  for (const [name, member] of Object.entries(requestBody)) {
    if (name === 'metadata') continue;
    if (name !== prompt || !Array.isArray(member)) inspect({}, name, member, name);
    else
      (member as unknown[]).forEach((element, i) => {
        if (!isRetold?.(element)) inspect({}, '', element, `${name}[${i}]`);
      });
  }
}

function inspect(holder: JsonObject, name: string, value: unknown, at: string): void {
  if (DATA.has(name) || (name === 'input' && CALLS.has(holder['type']))) return;
  if (isNamed(holder, name, value)) throw storedAtProvider(at);
  if (Array.isArray(value)) (value as unknown[]).forEach((element, i) => inspect({}, '', element, `${at}[${i}]`));
  else if (isObject(value))
    for (const [key, member] of Object.entries(value)) inspect(value, key, member, `${at}.${key}`);
}

function isNamed(holder: JsonObject, name: string, value: unknown): boolean {
  const isName = typeof value === 'string' || (Array.isArray(value) && value.length > 0);
  if (NAMES.has(name)) return (isName && !MADE.test(String(holder['type']))) || hasId(name, value);
  // Everybody may use the skills that the provider itself publishes.
  return name === 'skill_id' && isName && holder['type'] !== 'anthropic';
}

/** A container is named by its id, or by an object with it. */
const hasId = (name: string, value: unknown): boolean =>
  name === 'container' && isObject(value) && typeof value['id'] === 'string';
