import { isObject, type JsonObject } from '#wire';
import { quote } from './quote.ts';
import { isModernEra, levelFault, META, MODERN } from './revisions.ts';

/** The `_meta` object of a request's params; null without one. */
export function metaOf(params: JsonObject | undefined): JsonObject | null {
  const meta = params?.['_meta'];
  return isObject(meta) ? meta : null;
}

/** Whether `_meta` names a protocol version. A request whose `_meta` does is modern, or invalid. */
export const claimsEnvelope = (meta: JsonObject | null): meta is JsonObject =>
  meta !== null && Object.hasOwn(meta, META.version);

/** Whether `_meta` is a complete and valid envelope of the modern era. */
export function isModernClaim(meta: JsonObject | null): boolean {
  if (!claimsEnvelope(meta)) return false;
  const version = meta[META.version];
  return typeof version === 'string' && isModernEra(version) && envelopeIssue(meta) === null;
}

interface EnvelopeIssue {
  readonly key: string;
  /** Words that follow the name, such as "must be a string". */
  readonly problem: string;
}

/** The fault of `_meta` as the envelope of a modern request; null if it is valid. */
export function envelopeIssue(meta: JsonObject): EnvelopeIssue | null {
  for (const key of [META.version, META.capabilities])
    if (!Object.hasOwn(meta, key)) return { key, problem: `is missing, but requests of ${MODERN} must have it` };
  const {
    [META.version]: version,
    [META.capabilities]: capabilities,
    [META.clientInfo]: client,
    [META.logLevel]: level,
  } = meta;
  if (typeof version !== 'string') return { key: META.version, problem: 'must be a string' };
  if (!isObject(capabilities)) return { key: META.capabilities, problem: 'must be an object' };
  if (
    client !== undefined &&
    !(isObject(client) && typeof client['name'] === 'string' && typeof client['version'] === 'string')
  )
    return { key: META.clientInfo, problem: 'must be an object with a name and a version' };
  const fault = level === undefined ? null : levelFault(level);
  if (fault !== null) return { key: META.logLevel, problem: fault };
  const token = meta['progressToken'];
  if (token !== undefined && typeof token !== 'string' && !Number.isInteger(token))
    return { key: 'progressToken', problem: 'must be a string or an integer' };
  return null;
}

/**
 * The message and data of the error for a request whose header names a modern revision and whose body has no envelope.
 */
export function missingEnvelope(meta: JsonObject | null, version: string): [string, JsonObject] {
  const missing =
    meta === null ? ['_meta'] : [META.version, META.capabilities].filter((key) => !Object.hasOwn(meta, key));
  return [
    `The MCP-Protocol-Version header names ${quote(version)}, and params lack ${missing.join(', ')}`,
    { envelope: { missing } },
  ];
}
