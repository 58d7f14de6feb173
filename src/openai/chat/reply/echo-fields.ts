import { hash } from 'node:crypto';
import { isObject, type JsonObject } from '#wire';
import { createSealedTexts, type SealSecret } from '#security';
import type { ThinkingOf } from './sealed-thinking.ts';

/*
 * What a provider wants back with the results of its tool calls. Clients of other wires have no place for it, so it
 * travels in the ids of calls and the signatures of thinking, sealed.
 */

/**
 * The members of a message that a provider wants back with the next request: its thinking, in every form that is
 * published for chat, with signatures. Some providers refuse a request without them. Each goes back under the name
 * that the provider used. `thinking_blocks` are LiteLLM's.
 */
const KEPT = ['reasoning_content', 'reasoning', 'reasoning_details', 'thinking_blocks', 'extra_content'] as const;

export const echoMembersOf = (delta: JsonObject): readonly string[] => KEPT.filter((name) => !isNothing(delta[name]));

const isNothing = (value: unknown): boolean => (value ?? '') === '' || (Array.isArray(value) && value.length === 0);

/** The most characters of those members that one block, item or part of another wire holds. */
const THINKING_MAX = 1024 * 1024;

export class EchoFields {
  /** Empty if the members have more than `lengthMax` characters together. */
  members: Record<string, unknown> = {};
  length = 0;
  readonly #lengthMax: number;

  constructor(lengthMax: number = THINKING_MAX) {
    this.#lengthMax = lengthMax;
  }

  add(delta: JsonObject): void {
    for (const name of KEPT) {
      const value = delta[name];
      if (isNothing(value)) continue;
      this.length += lengthOf(value);
      if (this.length > this.#lengthMax) this.members = {};
      else this.members[name] = joined(this.members[name], value);
    }
  }

  clear(): void {
    this.members = {};
    this.length = 0;
  }
}

const OWN: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function']);

/**
 * The members of a tool call that only its provider understands, such as `extra_content` of Gemini. A provider may
 * refuse the call without them.
 */
export function furtherMembers(call: JsonObject): JsonObject {
  const further = Object.entries(call).filter(([name, value]) => !OWN.has(name) && (value ?? null) !== null);
  return further.length === 0 ? NOTHING : Object.fromEntries(further);
}

export const lengthOf = (value: unknown): number =>
  typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0);

export const NOTHING: JsonObject = Object.freeze({});

function joined(before: unknown, more: unknown): unknown {
  if (typeof before === 'string' && typeof more === 'string') return before + more;
  if (!Array.isArray(more)) return more;
  const all: unknown[] = Array.isArray(before) ? (before as unknown[]) : [];
  for (const detail of more as unknown[]) addDetail(all, detail);
  return all;
}

/** The texts of `reasoning_details` and `thinking_blocks` that arrive in pieces. */
const TEXTS = ['text', 'summary', 'data', 'thinking'];

/**
 * A detail with the same index and type continues the one before it. A thinking block has no index; its signature is
 * its end.
 */
function addDetail(all: unknown[], detail: unknown): void {
  const last = all.at(-1);
  const continues =
    isObject(last) &&
    isObject(detail) &&
    last['type'] === detail['type'] &&
    last['index'] === detail['index'] &&
    (typeof detail['index'] === 'number' || (detail['type'] === 'thinking' && (last['signature'] ?? '') === ''));
  if (!continues) return void all.push(isObject(detail) ? { ...detail } : detail);
  const lastFields = last as Record<string, unknown>;
  for (const [name, value] of Object.entries(detail)) {
    if ((value ?? null) === null) continue;
    const earlier = lastFields[name];
    lastFields[name] =
      TEXTS.includes(name) && typeof earlier === 'string' && typeof value === 'string' ? earlier + value : value;
  }
}

export interface EchoedToolCall {
  readonly id: string;
  /** Members of the call that its provider wants back. */
  readonly call: JsonObject;
  /** Members of the call's message that its provider wants back. */
  readonly message: JsonObject;
}

/**
 * Makes the id that a client gets for a tool call. `call` and `message`: the members of the call and of its message
 * that the provider wants back.
 */
export type ClientId = (id: string, call: JsonObject, message: JsonObject) => string;

interface CallIds {
  /**
   * Returns an id that contains the members, encrypted. Without members, or if the result would be too long, it is
   * the provider's own id.
   */
  readonly seal: ClientId;
  /**
   * The members of another model's call are left out. An id that this gateway did not make for this account stays,
   * but one in the gateway's format becomes short.
   */
  open(id: string): EchoedToolCall;
  /** Whether an id contains these members of its message. */
  readonly holds: (members: JsonObject, id: string) => boolean;
}

export type SealedCalls = (owner: ThinkingOf) => CallIds;

const SEALED_ID = 'tg3_';
/** Most characters of an id. A client sends each id twice with every later request. */
export const ID_MAX = 16 * 1024;
const DIGEST_CHARS = 24;

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedCalls(secret: SealSecret): SealedCalls {
  const texts = createSealedTexts(secret);
  return ({ account, model }) => {
    // It differs from every owner of thinking, which is JSON.
    const owner = `calls of ${account}`;
    const sealed = (echoedCall: EchoedToolCall): string | null => {
      if (isEmpty(echoedCall.call) && isEmpty(echoedCall.message)) return echoedCall.id;
      const text = JSON.stringify([model, echoedCall]);
      const id = text.length > ID_MAX ? null : SEALED_ID + texts.seal(owner, text);
      return id === null || id.length > ID_MAX ? null : id;
    };
    function open(id: string): EchoedToolCall {
      if (!id.startsWith(SEALED_ID)) return { id: plainId(id), call: NOTHING, message: NOTHING };
      const text = id.length > ID_MAX ? null : texts.open(owner, id.slice(SEALED_ID.length));
      if (text === null) return { id: plainId(id), call: NOTHING, message: NOTHING };
      const [ownerText, echoedCall] = JSON.parse(text) as readonly [string, EchoedToolCall];
      return ownerText === model ? echoedCall : { ...echoedCall, call: NOTHING, message: NOTHING };
    }
    return {
      seal: (id, call, message) => sealed({ id, call, message }) ?? sealed({ id, call, message: NOTHING }) ?? id,
      holds: (members, id) => !isEmpty(members) && JSON.stringify(open(id).message) === JSON.stringify(members),
      open,
    };
  };
}

/** Whether the id of a call contains what its provider wants back. */
export const isSealedCall = (id: string): boolean => id.startsWith(SEALED_ID);

/** OpenAI refuses longer ids of calls. */
const PLAIN_ID_MAX = 64;

/**
 * A short id in place of a sealed one, or of one of another service that is too long. It is the same wherever the id
 * occurs. Some providers take 40 characters.
 */
export const plainId = (id: string): string =>
  id.startsWith(SEALED_ID) || id.length > PLAIN_ID_MAX ? `call_${hash('sha256', id).slice(0, DIGEST_CHARS)}` : id;

export const isEmpty = (members: JsonObject): boolean => Object.keys(members).length === 0;
