import { setTimeout as pause } from 'node:timers/promises';
import { isObject, type JsonObject } from '#wire';
import { ERROR, metaOf, type RpcMessage } from './json-rpc.ts';

/**
 * The kind of protocol that a server speaks. Legacy: the client begins with `initialize`, and the state after it
 * belongs to one client. Modern: each request carries all it needs. `discovered` is null if the server knows neither
 * `initialize` nor `server/discover`.
 */
export type Era =
  | { readonly kind: 'legacy'; readonly initialized: JsonObject }
  | { readonly kind: 'modern'; readonly discovered: JsonObject | null };

/** The newest revision with `initialize`. A server may answer with an older one. */
const LEGACY = '2025-11-25';
/** The first revision without `initialize`. Versions are dates, so they can be compared as text. */
export const MODERN = '2026-07-28';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CLIENT = 'io.modelcontextprotocol/clientInfo';
export const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** Timeout for `server/discover`, because some servers ignore an unknown method instead of refusing it. */
const DISCOVER_MS = 10_000;
/** Timeout for `initialize`. It is long because a first start may have to download the program. */
const INITIALIZE_MS = 60_000;

/** `_meta` of a modern request that this program makes. */
export function envelope(version: string): JsonObject {
  return { [VERSION]: MODERN, [CLIENT]: { name: 'tollgate', version }, [CAPABILITIES]: {} };
}

/** The protocol version in a modern message's `_meta`. undefined for a legacy message. */
export function versionOf(message: RpcMessage): unknown {
  return metaOf(message)[VERSION];
}

/** The `_meta` members that make a message modern. null for a legacy message. */
export function envelopeOf(message: RpcMessage): JsonObject | null {
  const meta = metaOf(message);
  if (meta[VERSION] === undefined) return null;
  return Object.fromEntries(
    [VERSION, CLIENT, CAPABILITIES].flatMap((key) => (meta[key] === undefined ? [] : [[key, meta[key]]])),
  );
}

/** Messages that this program itself sends to a server. */
export interface OwnMessages {
  /** Sends a request of this program. Resolves with the response, or with null if the process ended. */
  query(method: string, params?: JsonObject): Promise<JsonObject | null>;
  tell(method: string, params?: JsonObject): void;
}

interface EraQuestion {
  readonly version: string;
  /** Whether to try `server/discover` first. */
  readonly discover: boolean;
  readonly discoverMs?: number;
}

/**
 * Asks a server that has just started which era it speaks. First sends `server/discover`, which legacy servers refuse,
 * then `initialize`. Resolves with null if the process ended. Rejects if the server speaks neither.
 */
export async function askEra(
  pipe: OwnMessages,
  { version, discover, discoverMs = DISCOVER_MS }: EraQuestion,
): Promise<Era | null> {
  const discovery = discover
    ? pipe.query('server/discover', { _meta: envelope(version) })
    : Promise.resolve({ error: {} });
  const first = await within(discoverMs, discovery);
  if (first === null) return null;
  const modern = modernOf(first);
  if (modern) return modern;

  const question = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'tollgate', version } };
  const answer = await within(INITIALIZE_MS, pipe.query('initialize', question));
  if (answer === null) return null;
  if (answer === undefined) throw new Error('did not answer to initialize in time');
  const { result, error } = answer;
  if (isObject(result)) {
    pipe.tell('notifications/initialized');
    return { kind: 'legacy', initialized: result };
  }
  // The server may have been slow to start and may have answered `server/discover` by now.
  const late = modernOf(await within(0, discovery));
  if (late) return late;
  if (isObject(error) && error['code'] === ERROR.methodNotFound) return { kind: 'modern', discovered: null };
  throw new Error('refused to initialize');
}

function modernOf(answer: JsonObject | null | undefined): Era | null {
  const result = answer?.['result'];
  if (!isObject(result) || !Array.isArray(result['supportedVersions'])) return null;
  const speaks = result['supportedVersions'].some((version) => typeof version === 'string' && version >= MODERN);
  return speaks ? { kind: 'modern', discovered: result } : null;
}

/** Resolves with undefined after `ms` milliseconds. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([promise, pause(ms, undefined, { signal: over.signal })]);
  } finally {
    over.abort();
  }
}
