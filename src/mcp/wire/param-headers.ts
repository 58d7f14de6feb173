import { isObject } from '#wire';
import { decodeHeaderValue, encodeHeaderValue, trimHeader } from './header-value.ts';
import { paramHeadersOf } from './param-schema.ts';
import { MODERN_METHODS } from './revisions.ts';

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}

/**
 * A value in the form that a header repeats; null for objects, null, and integers beyond the exact range, because no
 * header repeats these.
 */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number' || !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
    return null;
  return String(value);
}

/**
 * Says how the Mcp-Param-* headers of a tool call disagree with its arguments, for an error −32020 with HTTP 400; null
 * if they agree. `headers` are Node's, with names in lower case. A header whose argument is absent is not checked.
 */
export function paramHeaderFault(
  inputSchema: unknown,
  args: unknown,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | null {
  for (const [lower, { path, name, numeric }] of paramHeadersOf(inputSchema)) {
    const value = valueAt(args, path);
    const text = textOf(value);
    if (text === null) continue;
    const header = headers[`mcp-param-${lower}`];
    const where = `the argument ${path.join('.')}`;
    if (header === undefined) return `the header Mcp-Param-${name} is missing, and ${where} has a value`;
    const said = decodeHeaderValue(trimHeader(Array.isArray(header) ? header.join(', ') : header));
    if (said === null) return `the header Mcp-Param-${name} is not valid Base64 of UTF-8`;
    const same = numeric && typeof value === 'number' && DECIMAL.test(said) ? Number(said) === value : said === text;
    if (!same) return `the header Mcp-Param-${name} and ${where} differ`;
  }
  return null;
}

/**
 * The Mcp-Method, Mcp-Name and Mcp-Param-* headers of a modern request that the gateway itself makes. `inputSchema` is
 * that of the called tool; null if it is unknown or no tool is called.
 */
export function standardHeaders(method: string, params: unknown, inputSchema: unknown): Record<string, string> {
  const headers: Record<string, string> = { 'Mcp-Method': method };
  const name = nameOf(method, params);
  if (name !== null) headers['Mcp-Name'] = encodeHeaderValue(name);
  if (method === 'tools/call' && isObject(params))
    for (const { path, name: suffix } of paramHeadersOf(inputSchema).values()) {
      const text = textOf(valueAt(params['arguments'], path));
      if (text !== null) headers[`Mcp-Param-${suffix}`] = encodeHeaderValue(text);
    }
  return headers;
}

/**
 * The name that Mcp-Name repeats: that of a tool or prompt, the URI of a resource, or the id of a task. Null for other
 * methods.
 */
export function nameOf(method: string, params: unknown): string | null {
  const key = MODERN_METHODS[method]?.nameParam;
  const name = key && isObject(params) ? params[key] : null;
  return typeof name === 'string' ? name : null;
}
