import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';

/** Names of the consumer for what a call is for, such as `team: 'blue'`: they group its spending. */
export type Tags = Readonly<Record<string, string>>;

const TAGS_MAX = 8;
const TAGS_HEADER = 'x-tollgate-tags';
/** The header of clients of LiteLLM: words, or `name:value`, with commas. */
const WORDS_HEADER = 'x-litellm-tags';

const NAME = /^[A-Za-z][\w.-]{0,31}$/;
const VALUE = /^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u;
/** The value of a tag that is only a word. */
const WORD = 'true';

/**
 * The tags in the headers of a request; undefined without any. Throws GatewayError `invalid_request` for a wrong
 * header.
 */
export function tagsOfHeaders(headers: IncomingHttpHeaders): Tags | undefined {
  const [pairs, words] = [headers[TAGS_HEADER], headers[WORDS_HEADER]];
  if (pairs === undefined && words === undefined) return undefined;
  const tags: Record<string, string> = {};
  if (words !== undefined) for (const part of partsOf(words)) addWord(tags, part);
  if (pairs !== undefined)
    for (const part of partsOf(pairs)) {
      const at = part.indexOf('=');
      const [name, value] = [part.slice(0, at).trim(), part.slice(at + 1).trim()];
      if (at < 0 || !isTag(name, value))
        throw new GatewayError(
          'invalid_request',
          `${TAGS_HEADER} is name=value pairs with commas between: a name is a letter and at most 31 letters, digits, "_", "-" or "."; a value has 1 to 64 characters`,
          { param: TAGS_HEADER },
        );
      tags[name] = value;
    }
  if (Object.keys(tags).length > TAGS_MAX)
    throw new GatewayError('invalid_request', `A call has at most ${TAGS_MAX} tags`, { param: TAGS_HEADER });
  return tags;
}

const partsOf = (header: string | readonly string[]): readonly string[] =>
  String(header)
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

const isTag = (name: string, value: string): boolean => NAME.test(name) && VALUE.test(value);

/** Adds a word, or `name:value`, if it can be a tag. */
function addWord(tags: Record<string, string>, text: string): void {
  const at = text.indexOf(':');
  const [name, value] = at < 0 ? [text, WORD] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  if (isTag(name, value)) tags[name] = value;
}

/**
 * The tags of a call: those of its headers, then the texts of its `metadata`, and the words of `metadata.tags`, as far
 * as they can be tags and there is room. undefined without any.
 */
export function tagsOfCall(
  ofHeaders: Tags | undefined,
  metadata: Readonly<Record<string, unknown>> | null,
): Tags | undefined {
  if (metadata === null) return ofHeaders;
  const own: Record<string, string> = {};
  const words: unknown = metadata['tags'];
  if (Array.isArray(words))
    for (const word of words.slice(0, TAGS_MAX)) if (typeof word === 'string') addWord(own, word);
  for (const [name, value] of Object.entries(metadata))
    if (typeof value === 'string' && isTag(name, value)) own[name] = value;
  const all = Object.entries({ ...ofHeaders, ...own, ...ofHeaders }).slice(0, TAGS_MAX);
  return all.length === 0 ? undefined : Object.fromEntries(all);
}
