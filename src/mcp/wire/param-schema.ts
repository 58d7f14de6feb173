import { isObject } from '#wire';

/** A token of RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** A property of a tool's arguments that a header repeats. */
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
export function paramHeadersOf(inputSchema: unknown): ReadonlyMap<string, ParamHeader> {
  if (!isObject(inputSchema)) return NONE;
  let found = known.get(inputSchema);
  if (!found) {
    found = readSchema(inputSchema) ?? NONE;
    known.set(inputSchema, found);
  }
  return found;
}

const NONE: ReadonlyMap<string, ParamHeader> = new Map();

interface Place {
  readonly node: unknown;
  /** Null if the path has another keyword than `properties`. */
  readonly path: readonly string[] | null;
}

function readSchema(root: object): ReadonlyMap<string, ParamHeader> | null {
  const found = new Map<string, ParamHeader>();
  const open: Place[] = [{ node: root, path: [] }];
  for (let read = 0; read < open.length; read++) {
    const { node, path } = open[read]!;
    if (open.length > SCHEMA_NODES_MAX || (path !== null && path.length > PATH_MAX)) return null;
    if (!isObject(node)) continue;
    if (Object.hasOwn(node, 'x-mcp-header')) {
      const header = toParamHeader(node, path);
      if (!header || found.has(header.name.toLowerCase())) return null;
      found.set(header.name.toLowerCase(), header);
    }
    if (isObject(node['properties']))
      for (const [key, child] of Object.entries(node['properties']))
        open.push({ node: child, path: path && [...path, key] });
    for (const keyword of ELSEWHERE)
      for (const child of childrenOf(node[keyword], keyword)) open.push({ node: child, path: null });
  }
  return found;
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
