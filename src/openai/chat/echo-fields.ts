import { hash, createHmac, hkdfSync, type Hmac, timingSafeEqual } from 'node:crypto';
import { isObject } from '#wire';
import { createSealedTexts } from '#security';

/*
 * What a provider wants back with the results of its tool calls. Clients of other wires have no place for it, so it
 * travels in the ids of calls and the signatures of thinking, sealed.
 */

type Json = Readonly<Record<string, unknown>>;

/**
 * The members of a message that a provider wants back with the results of its tool calls. Some providers refuse a
 * request without them. Each goes back under the name that the provider used.
 */
const KEPT = ['reasoning_content', 'reasoning', 'reasoning_details', 'extra_content'] as const;

/** Names of those members that a delta or a message has. */
export const echoMembersOf = (delta: Json): readonly string[] => KEPT.filter((name) => (delta[name] ?? '') !== '');

/** Collects these members of a message. */
interface EchoFields {
  /** Adds those of a delta, or of a whole message. */
  add(delta: Json): void;
  /** Empty if the members have more than `lengthMax` characters together. */
  members: Record<string, unknown>;
  /** The characters of all members. */
  length: number;
}

export function createEchoFields(lengthMax: number): EchoFields {
  return {
    members: {},
    length: 0,
    add(delta) {
      for (const name of KEPT) {
        const value = delta[name] ?? '';
        if (value === '') continue;
        this.length += lengthOf(value);
        if (this.length > lengthMax) this.members = {};
        else this.members[name] = joined(this.members[name], value);
      }
    },
  };
}

const OWN: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function']);

/**
 * The members of a tool call that only its provider understands, such as `extra_content` of Gemini. A provider may
 * refuse the call without them.
 */
export function furtherMembers(call: Json): Json {
  const further = Object.entries(call).filter(([name, value]) => !OWN.has(name) && (value ?? null) !== null);
  return further.length === 0 ? NOTHING : Object.fromEntries(further);
}

/** Characters of a value in a request. */
export const lengthOf = (value: unknown): number =>
  typeof value === 'string' ? value.length : (JSON.stringify(value)?.length ?? 0);

export const NOTHING: Json = Object.freeze({});

function joined(before: unknown, more: unknown): unknown {
  if (typeof before === 'string' && typeof more === 'string') return before + more;
  if (!Array.isArray(more)) return more;
  const all: unknown[] = Array.isArray(before) ? (before as unknown[]) : [];
  for (const detail of more as unknown[]) addDetail(all, detail);
  return all;
}

/** The texts of `reasoning_details` that arrive in pieces. */
const TEXTS = ['text', 'summary', 'data'];

/** A detail with the same index and type continues the one before it. */
function addDetail(all: unknown[], detail: unknown): void {
  const last = all.at(-1);
  const continues =
    isObject(last) &&
    isObject(detail) &&
    typeof detail['index'] === 'number' &&
    last['index'] === detail['index'] &&
    last['type'] === detail['type'];
  if (!continues) return void all.push(isObject(detail) ? { ...detail } : detail);
  const kept = last as Record<string, unknown>;
  for (const [name, value] of Object.entries(detail)) {
    if ((value ?? null) === null) continue;
    const said = kept[name];
    kept[name] = TEXTS.includes(name) && typeof said === 'string' && typeof value === 'string' ? said + value : value;
  }
}

/** A tool call in the conversation of a client. */
export interface EchoedToolCall {
  /** The provider's own id. */
  readonly id: string;
  /** Members of the call that its provider wants back. */
  readonly call: Json;
  /** Members of the call's message that its provider wants back. */
  readonly message: Json;
}

/**
 * Makes the id that a client gets for a tool call. `call` and `message`: the members of the call and of its message
 * that the provider wants back.
 */
export type ClientId = (id: string, call: Json, message: Json) => string;

/** The ids of tool calls for one account and model. */
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
}

/** Makes the ids of tool calls for an account and a model. */
export type SealedCalls = (of: ThinkingOf) => CallIds;

const SEALED_ID = 'tg3_';
/** Most characters of an id. A client sends each id twice with every later request. */
export const ID_MAX = 16 * 1024;
const DIGEST_CHARS = 24;

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedCalls(secret: Uint8Array): SealedCalls {
  const texts = createSealedTexts(secret);
  return ({ account, model }) => {
    // It differs from every owner of thinking, which is JSON.
    const owner = `calls of ${account}`;
    const sealed = (kept: EchoedToolCall): string | null => {
      if (isEmpty(kept.call) && isEmpty(kept.message)) return kept.id;
      const text = JSON.stringify([model, kept]);
      const id = text.length > ID_MAX ? null : SEALED_ID + texts.seal(owner, text);
      return id === null || id.length > ID_MAX ? null : id;
    };
    return {
      seal: (id, call, message) => sealed({ id, call, message }) ?? sealed({ id, call, message: NOTHING }) ?? id,
      open(id) {
        if (!id.startsWith(SEALED_ID)) return { id: plainId(id), call: NOTHING, message: NOTHING };
        const text = id.length > ID_MAX ? null : texts.open(owner, id.slice(SEALED_ID.length));
        if (text === null) return { id: plainId(id), call: NOTHING, message: NOTHING };
        const [of, kept] = JSON.parse(text) as readonly [string, EchoedToolCall];
        return of === model ? kept : { ...kept, call: NOTHING, message: NOTHING };
      },
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

const isEmpty = (members: Json): boolean => Object.keys(members).length === 0;

/** The owner of the thinking. It goes back only to the same account and the same model. */
export interface ThinkingOf {
  readonly account: string;
  readonly model: string;
}

/** Signs the thinking of a model. The client stores it, and the model gets it back unchanged. */
export interface SealedThinking {
  /** Signs a text that the client sees, piece by piece. */
  signing(of: ThinkingOf): { add(text: string): void; signature(): string };
  /** A signature that contains the text, because the client does not see the text. */
  seal(of: ThinkingOf, text: string): string;
  /**
   * Returns the text that a signature belongs to: `shown`, or the text inside the signature. Returns null if this
   * gateway did not make the signature for this owner and text.
   */
  open(of: ThinkingOf, shown: string, signature: string): string | null;
}

const SIGNED = 'tg1.';
const SEALED = 'tg2.';
/** Whether a signature has this gateway's format, which no other service reads. */
export const isSealedHere = (signature: unknown): boolean =>
  typeof signature === 'string' && (signature.startsWith(SIGNED) || signature.startsWith(SEALED));

/** A character outside of the basic plane may arrive in two halves, which UTF-8 cannot encode. */
const UNITS = 'utf16le';

/** `secret`: 32 bytes that all gateways of one database share. */
export function createSealedThinking(secret: Uint8Array): SealedThinking {
  const texts = createSealedTexts(secret);
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'signatures of thinking', 32));
  const named = ({ account, model }: ThinkingOf) => JSON.stringify([account, model]);
  const signer = (of: ThinkingOf): Hmac => createHmac('sha256', key).update(named(of)).update('\0');
  return {
    signing(of) {
      const mac = signer(of);
      return {
        add: (text) => void mac.update(text, UNITS),
        signature: () => SIGNED + mac.digest('base64url'),
      };
    },
    seal: (of, text) => SEALED + texts.seal(named(of), text),
    open(of, shown, signature) {
      if (signature.startsWith(SEALED)) return texts.open(named(of), signature.slice(SEALED.length));
      if (!signature.startsWith(SIGNED)) return null;
      const given = Buffer.from(signature.slice(SIGNED.length), 'base64url');
      const right = signer(of).update(shown, UNITS).digest();
      return given.length === right.length && timingSafeEqual(given, right) ? shown : null;
    },
  };
}
