import { setTimeout as pause } from 'node:timers/promises';
import { isObject, type JsonObject } from '#wire';
import { ERROR, metaOf, type Message } from './json-rpc.ts';
import type { Pipe } from './pipe.ts';

/**
 * How a server wants to be spoken to. Legacy: `initialize`, and what it then keeps belongs to one client. Modern:
 * each request says for itself what there is to know. `discovered` is null of a server that knows neither
 * beginning.
 */
export type Era =
  | { readonly kind: 'legacy'; readonly initialized: JsonObject }
  | { readonly kind: 'modern'; readonly discovered: JsonObject | null };

/** The newest revision in which a client begins with `initialize`. A server may answer with an older one. */
const LEGACY = '2025-11-25';
/** The first one without. Versions are dates, so they compare as text. */
export const MODERN = '2026-07-28';

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CLIENT = 'io.modelcontextprotocol/clientInfo';
export const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** A server that passes over what it does not know, instead of refusing it, is waited for this long. */
const DISCOVER_MS = 10_000;
/** A first start may have to fetch what it runs. */
const INITIALIZE_MS = 60_000;

/** `_meta` of a modern request that this program itself makes. */
export function envelope(version: string): JsonObject {
  return { [VERSION]: MODERN, [CLIENT]: { name: 'tollgate', version }, [CAPABILITIES]: {} };
}

/** The version that a modern message says it is of; undefined of every other. */
export function versionOf(message: Message): unknown {
  return metaOf(message)[VERSION];
}

/** The members of `_meta` that make a message a modern one; null for a legacy message. */
export function envelopeOf(message: Message): JsonObject | null {
  const meta = metaOf(message);
  if (meta[VERSION] === undefined) return null;
  return Object.fromEntries(
    [VERSION, CLIENT, CAPABILITIES].flatMap((key) => (meta[key] === undefined ? [] : [[key, meta[key]]])),
  );
}

interface EraQuestion {
  /** Of this program, told to the server. */
  readonly version: string;
  /** Whether to ask for the modern era first. */
  readonly discover: boolean;
  readonly discoverMs?: number;
}

/**
 * Asks a server that has just been started: `server/discover` first, which legacy servers refuse, then
 * `initialize`. Null when the process ended instead. Rejects when it can be spoken to in neither way.
 */
export async function askEra(
  pipe: Pipe,
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
  // It may have been slow to start, and have said by now what it is.
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

/** Undefined when it takes longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([promise, pause(ms, undefined, { signal: over.signal })]);
  } finally {
    over.abort();
  }
}
