import { createHash, type Hash } from 'node:crypto';
import type { CallRequest } from '#call';
import type { ChatBody, ContentPart } from '../chat-schema.ts';
import { BYTES_PER_TOKEN, type PromptSize } from './prompt-size.ts';

export type RepeatedPrompt = NonNullable<CallRequest['repeats']>;

/** Vendors cache no shorter beginnings of prompts. */
const TOKENS_MIN = 1_024;
const LENGTH_MIN = TOKENS_MIN * BYTES_PER_TOKEN;
/** The most characters that are read. Prompts that are the same up to here share what is cached of it. */
const LENGTH_MAX = 65_536;

/**
 * The tools and instructions with which a prompt begins, as a digest of `account` and of them; null if they are too
 * short to be cached. Tools come first, as in the prompts that vendors make.
 */
export function promptPrefix(
  body: ChatBody,
  { bytes }: PromptSize,
  account: string,
): ReturnType<RepeatedPrompt['prefix']> {
  if (bytes < LENGTH_MIN) return null;
  const read: HashedPrefix = { hash: createHash('sha256'), length: 0 };
  // Each tool by itself, so that the text of all of them is not made once more.
  for (const tool of body.tools ?? []) if (!add(read, JSON.stringify(tool))) break;
  for (const { role, content } of body.messages) {
    if ((role !== 'system' && role !== 'developer') || read.length >= LENGTH_MAX) break;
    if (typeof content === 'string') add(read, content);
    else if (Array.isArray(content))
      for (const { text } of content as readonly ContentPart[]) if (typeof text === 'string') add(read, text);
  }
  if (read.length < LENGTH_MIN) return null;
  return { key: `${account} ${read.hash.digest('base64url')}`, share: Math.min(1, read.length / bytes) };
}

interface HashedPrefix {
  readonly hash: Hash;
  length: number;
}

/** Returns whether more can be added. */
function add(read: HashedPrefix, text: string): boolean {
  const lengthLeft = LENGTH_MAX - read.length;
  const part = text.length > lengthLeft ? text.slice(0, lengthLeft) : text;
  read.length += part.length;
  read.hash.update(part);
  // Without a separator, texts that are divided otherwise would be the same.
  read.hash.update('\0');
  return read.length < LENGTH_MAX;
}
