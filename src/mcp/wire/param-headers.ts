import { isObject } from '#wire';
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
    const decoded = decodeHeaderValue(trimHeader(Array.isArray(header) ? header.join(', ') : header));
    if (decoded === null) return `the header Mcp-Param-${name} is not valid Base64 of UTF-8`;
    const same =
      numeric && typeof value === 'number' && DECIMAL.test(decoded) ? Number(decoded) === value : decoded === text;
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

/** A token of RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

interface ParamHeader {
  readonly path: readonly string[];
  /** The header's name behind `Mcp-Param-`. */
  readonly name: string;
  readonly numeric: boolean;
}

/** A cache by schema object, because the same schema of the catalogue is needed at each call. */
const known = new WeakMap<object, ReadonlyMap<string, ParamHeader>>();

/** Bounds for reading a schema, because it comes from a server that is not trusted. */
const SCHEMA_NODES_MAX = 10_000;
const PATH_MAX = 64;

/**
 * Properties with `x-mcp-header` in an input schema, by lower-case name. The specification allows `x-mcp-header` only
 * if the path to the property consists of `properties` alone. The name must be a token and unique in the schema, and
 * the type must fit into a header. A schema that breaks one of these rules has no headers. The type `number` breaks
 * them too, but is accepted because servers compare its header.
 */
function paramHeadersOf(inputSchema: unknown): ReadonlyMap<string, ParamHeader> {
  if (!isObject(inputSchema)) return NONE;
  let headers = known.get(inputSchema);
  if (!headers) {
    headers = readSchema(inputSchema) ?? NONE;
    known.set(inputSchema, headers);
  }
  return headers;
}

const NONE: ReadonlyMap<string, ParamHeader> = new Map();

interface SchemaPlace {
  readonly node: unknown;
  /** Null if the path has another keyword than `properties`. */
  readonly path: readonly string[] | null;
}

function readSchema(root: object): ReadonlyMap<string, ParamHeader> | null {
  const headers = new Map<string, ParamHeader>();
  const open: SchemaPlace[] = [{ node: root, path: [] }];
  for (let read = 0; read < open.length; read++) {
    const { node, path } = open[read]!;
    if (open.length > SCHEMA_NODES_MAX || (path !== null && path.length > PATH_MAX)) return null;
    if (!isObject(node)) continue;
    if (Object.hasOwn(node, 'x-mcp-header')) {
      const header = toParamHeader(node, path);
      if (!header || headers.has(header.name.toLowerCase())) return null;
      headers.set(header.name.toLowerCase(), header);
    }
    if (isObject(node['properties']))
      for (const [key, child] of Object.entries(node['properties']))
        open.push({ node: child, path: path && [...path, key] });
    for (const keyword of ELSEWHERE)
      for (const child of childrenOf(node[keyword], keyword)) open.push({ node: child, path: null });
  }
  return headers;
}

function toParamHeader(node: Readonly<Record<string, unknown>>, path: readonly string[] | null): ParamHeader | null {
  const { 'x-mcp-header': name, type } = node;
  if (!path?.length || typeof name !== 'string' || !TOKEN.test(name)) return null;
  const numeric = type === 'integer' || type === 'number';
  return numeric || type === 'string' || type === 'boolean' ? { path, name, numeric } : null;
}

const MAPS = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];
/** Keywords other than `properties` that hold subschemas. */
const ELSEWHERE = [
  ...MAPS,
  'items',
  'prefixItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'propertyNames',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
];

function childrenOf(value: unknown, keyword: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (isObject(value)) return MAPS.includes(keyword) ? Object.values(value) : [value];
  return [];
}

const SENTINEL = { start: '=?base64?', end: '?=' } as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Texts that a header can carry unchanged: printable ASCII and tabs, without white space at the ends. */
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of an Mcp-Name or Mcp-Param-* value. The value may be `=?base64?…?=`; null if that is not valid Base64 of
 * UTF-8.
 */
export function decodeHeaderValue(value: string): string | null {
  if (!isEncoded(value)) return value;
  const base64 = value.slice(SENTINEL.start.length, -SENTINEL.end.length);
  if (!BASE64.test(base64)) return null;
  try {
    return utf8.decode(Buffer.from(base64, 'base64'));
  } catch {
    return null;
  }
}

/**
 * A text as a header value. It becomes Base64 if a header cannot carry it, or if it looks like the Base64 form itself.
 */
export function encodeHeaderValue(text: string): string {
  return PLAIN.test(text) && !isEncoded(text)
    ? text
    : SENTINEL.start + Buffer.from(text).toString('base64') + SENTINEL.end;
}

const isEncoded = (value: string) =>
  value.length >= SENTINEL.start.length + SENTINEL.end.length &&
  value.startsWith(SENTINEL.start) &&
  value.endsWith(SENTINEL.end);

/** A header value without the white space that HTTP allows around it. Runs in linear time. */
export function trimHeader(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isSpace(value, start)) start++;
  while (end > start && isSpace(value, end - 1)) end--;
  return value.slice(start, end);
}

const isSpace = (value: string, at: number) => value[at] === ' ' || value[at] === '\t';
