import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { RecentMap } from '#maps';

/** Names of the consumer for what a call is for, such as `team: 'blue'`: they group its spending. */
export type Tags = Readonly<Record<string, string>>;

const TAGS_MAX = 8;
const TAGS_HEADER = 'x-tollgate-tags';
/** The header of clients of LiteLLM: words, or `name:value`, with commas. */
const WORDS_HEADER = 'x-litellm-tags';

/** The most tags that are fixed on a key, so that a request has room for its own. */
const FIXED_MAX = 4;
const VALUE_MAX = 64;
/** Each call keeps its tags. In UTF-8; a value of other letters than those of English has 32 to 48 characters. */
const VALUE_BYTES_MAX = 96;
export const TAG_FORM = `a name is a letter and at most 31 letters, digits, "_", "-" or "."; a value has 1 to ${VALUE_MAX} characters, and at most ${VALUE_BYTES_MAX} bytes`;

const NAME = /^[A-Za-z][\w.-]{0,31}$/;
const VALUE = /^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u;
/** The value of a tag that is only a word. */
const WORD = 'true';

/** The program that makes a call, as OpenRouter's clients name it: by its title, or by the address of its page. */
const APP_HEADERS = ['x-title', 'x-openrouter-title', 'http-referer'] as const;
/** The end user of a call, as LiteLLM's clients name it. */
const USER_HEADERS = ['x-litellm-end-user-id', 'x-litellm-customer-id'] as const;
/** All headers that name a call. */
export const NAME_HEADERS = [TAGS_HEADER, WORDS_HEADER, ...APP_HEADERS, ...USER_HEADERS] as const;
const APP_TAG = 'app';
const USER_TAG = 'end_user';

interface HeaderNames {
  readonly tags?: Tags;
  readonly endUser?: string;
}

/** The part of a caller that names its calls. `key.tags`: those that no request changes. */
interface NamedCaller extends HeaderNames {
  readonly account: string;
  readonly key: { readonly tags?: Tags } | null;
}

/**
 * The tags and the end user in the headers of a request, besides the tags of the caller; null if its headers name
 * nothing. Throws GatewayError `invalid_request` for a wrong header, and `permission_denied` for another value of a tag
 * that is fixed on the key.
 */
export function namesInHeaders(headers: IncomingHttpHeaders, { key, tags: before }: NamedCaller): HeaderNames | null {
  const pairs = headers[TAGS_HEADER];
  const words = headers[WORDS_HEADER];
  const app = firstOf(headers, APP_HEADERS);
  const endUser = firstOf(headers, USER_HEADERS);
  if (pairs === undefined && words === undefined && app === null && endUser === null) return null;
  const fixed = key?.tags;
  const isPairs = typeof pairs === 'string' && words === undefined && app === null;
  const text = isPairs ? pairs : `${pairs ?? ''}\n${words ?? ''}\n${app ?? ''}`;
  const parsed = parsedHeaders.get(text);
  let tags = parsed?.before === before && parsed?.fixed === fixed ? parsed?.tags : undefined;
  if (tags === undefined) {
    tags = tagsInHeaders({ pairs, words, app }, before, fixed);
    if (text.length <= CACHED_CHARS_MAX) parsedHeaders.set(text, { before, fixed, tags });
  }
  return endUser === null ? { tags } : { tags, endUser };
}

/** Programs send the same headers with each of their calls. The key is their text. */
const parsedHeaders = new RecentMap<{
  readonly before: Tags | undefined;
  readonly fixed: Tags | undefined;
  readonly tags: Tags;
}>(1_000);
const CACHED_CHARS_MAX = 512;

interface TagHeaders {
  readonly pairs: string | readonly string[] | undefined;
  readonly words: string | readonly string[] | undefined;
  readonly app: string | null;
}

function tagsInHeaders({ pairs, words, app }: TagHeaders, before: Tags | undefined, fixed: Tags | undefined): Tags {
  const tags: Record<string, string> = {};
  if (words !== undefined) for (const part of partsOf(words)) addWord(tags, part);
  if (pairs !== undefined)
    for (const part of partsOf(pairs)) {
      const [name, value] = pairOf(part);
      if (name === undefined || !isTag(name, value))
        throw new GatewayError('invalid_request', `${TAGS_HEADER} is ${PAIRS}`, { param: TAGS_HEADER });
      tags[name] = value;
    }
  refuseOthers(tags, fixed, pairs === undefined ? WORDS_HEADER : TAGS_HEADER);
  const all: Record<string, string> = { ...before, ...tags };
  if (Object.keys(all).length > TAGS_MAX)
    throw new GatewayError('invalid_request', `A call has at most ${TAGS_MAX} tags, with those of its key`, {
      param: TAGS_HEADER,
    });
  if (app !== null && all[APP_TAG] === undefined && Object.keys(all).length < TAGS_MAX) {
    const value = shortened(URL.canParse(app) ? new URL(app).host : app);
    if (isTag(APP_TAG, value)) all[APP_TAG] = value;
  }
  return all;
}

const PAIRS = `name=value pairs with commas between: ${TAG_FORM}`;

function firstOf(headers: IncomingHttpHeaders, names: readonly string[]): string | null {
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined && value.length > 0) return String(value);
  }
  return null;
}

function pairOf(part: string): readonly [name: string | undefined, value: string] {
  const at = part.indexOf('=');
  return [at < 0 ? undefined : part.slice(0, at).trim(), part.slice(at + 1).trim()];
}

function shortened(text: string): string {
  const first = text.trim().slice(0, VALUE_MAX).toWellFormed();
  // What is encoded ends between two characters.
  return first.slice(0, encoder.encodeInto(first, new Uint8Array(VALUE_BYTES_MAX)).read).trim();
}
const encoder = new TextEncoder();

/** Refuses tags that differ from those that are fixed on the key. `place`: where the request names them. */
function refuseOthers(tags: Tags, fixed: Tags | undefined, place: string): void {
  if (fixed === undefined) return;
  for (const [name, value] of Object.entries(fixed))
    if (Object.hasOwn(tags, name) && tags[name] !== value)
      throw new GatewayError(
        'permission_denied',
        `The tag ${name} is ${value} on this API key, and a request cannot change it: leave ${name} out of ${place}, or use another key`,
        { param: place },
      );
}

const partsOf = (header: string | readonly string[]): readonly string[] =>
  String(header)
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

const isTag = (name: string, value: string): boolean =>
  NAME.test(name) && VALUE.test(value) && Buffer.byteLength(value) <= VALUE_BYTES_MAX;

function addWord(tags: Record<string, string>, text: string): void {
  const at = text.indexOf(':');
  const [name, value] = at < 0 ? [text, WORD] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  if (isTag(name, value)) tags[name] = value;
}

/** How the records of calls name end users: by a digest, as the client names them, or not at all. */
export type EndUsers = 'digest' | 'plain' | 'off';

/** The parts of a request that name its call. `endUser`: the end user in its body. */
interface NamedRequest {
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly endUser?: string | null | undefined;
}

/**
 * The tags of a call: those of its key and its headers, its end user, then the texts of its `metadata`, and the words
 * of `metadata.tags`, as far as they can be tags and there is room. undefined without any. Throws GatewayError
 * `permission_denied` for another value of a tag that is fixed on the key.
 */
export function tagsOfCall(
  { account, key, tags: ofHeaders, endUser: ofHeader }: NamedCaller,
  { metadata, endUser: ofBody }: NamedRequest,
  endUsers: EndUsers,
): Tags | undefined {
  const user = ofHeader ?? userOf(metadata).user ?? ofBody;
  if (metadata === null && !user) return ofHeaders;
  const texts: Record<string, string> = {};
  const words: unknown = metadata?.['tags'];
  if (Array.isArray(words))
    for (const word of words.slice(0, TAGS_MAX)) if (typeof word === 'string') addWord(texts, word);
  for (const [name, value] of Object.entries(metadata ?? {}))
    if (name !== USER_ID && typeof value === 'string' && isTag(name, value)) texts[name] = value;
  refuseOthers(texts, key?.tags, 'metadata');
  const userTag = user && endUsers !== 'off' ? { [USER_TAG]: viewUser(account, user, endUsers) } : {};
  const all = Object.entries({ ...ofHeaders, ...userTag, ...texts, ...ofHeaders }).slice(0, TAGS_MAX);
  return all.length === 0 ? undefined : Object.fromEntries(all);
}

/** The member of the metadata of the Messages API that names the end user. */
const USER_ID = 'user_id';
/** Claude Code names its installation, the account and the session there, in one of two forms. */
const CODE_USER = /^user_([0-9a-f]+)_account_([0-9a-f-]*)_session_([0-9a-f-]+)$/;

const NOBODY: ReturnType<typeof userOf> = {};

/** The end user in the metadata of a request, and the session, if a client names both there. */
export function userOf(metadata: NamedRequest['metadata']): { readonly user?: string; readonly session?: string } {
  const text: unknown = metadata?.[USER_ID];
  if (typeof text !== 'string' || text === '') return NOBODY;
  const [, device, account, session] = CODE_USER.exec(text) ?? [];
  if (session !== undefined) return { user: account || device!, session };
  if (!text.startsWith('{')) return { user: text };
  const [id, uuid, run] = CODE_MEMBERS.map((member) => member.exec(text)?.[1]);
  return { user: uuid || id || text, ...(run ? { session: run } : {}) };
}

const CODE_MEMBERS = ['device_id', 'account_uuid', 'session_id'].map(
  (name) => new RegExp(`"${name}"\\s*:\\s*"([\\w-]{1,64})"`),
);

const DIGEST_LENGTH = 24;
/** The name of an end user in records. The digest differs by account, so two consumers cannot compare their users. */
function viewUser(account: string, user: string, endUsers: EndUsers): string {
  if (endUsers === 'plain' && isTag(USER_TAG, user)) return user;
  const name = `${account}\n${user}`;
  let digest = digests.get(name);
  if (digest === undefined) {
    digest = hash('sha256', name).slice(0, DIGEST_LENGTH);
    if (name.length <= CACHED_CHARS_MAX) digests.set(name, digest);
  }
  return digest;
}

/** By account and end user, because an end user makes many calls. */
const digests = new RecentMap<string>(1_000);

export const fixedTagsSchema = {
  type: ['object', 'null'],
  maxProperties: FIXED_MAX,
  propertyNames: {
    pattern: NAME.source,
    'x-must-be': 'an object whose names have a letter and then at most 31 letters, digits, _, - or .',
  },
  additionalProperties: { type: 'string', minLength: 1, maxLength: VALUE_MAX },
} as const;

/** A tag as `name=value`; null for another text. */
export function parseTag(text: string): readonly [name: string, value: string] | null {
  const [name, value] = pairOf(text);
  return name !== undefined && isTag(name, value) ? [name, value] : null;
}

export const tagsText = (tags: Tags): string =>
  Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

export function fixedTagsFault(tags: Tags): string | null {
  const wrong = Object.entries(tags).find(([name, value]) => !isTag(name, value));
  if (wrong !== undefined) return `has ${wrong[0]}=${wrong[1]}, and tags are ${PAIRS}`;
  return Object.keys(tags).length > FIXED_MAX ? `has more than ${FIXED_MAX} tags` : null;
}

export const tagsToText = (tags: Tags | null): string | null =>
  tags === null || Object.keys(tags).length === 0 ? null : JSON.stringify(tags);
export const tagsFromText = (text: string | null): Tags | null => (text === null ? null : (JSON.parse(text) as Tags));
