import { hash } from 'node:crypto';
import { isObject } from '#wire';
import { MESSAGES_PATH } from '#config';
import type { NativeWire } from '../native/native-wire.ts';
import { holds } from '../native/native-size.ts';
import { isSealedHere } from '../translated/sealed-thinking.ts';
import { CLIENT_TOOLS } from './client-tools.ts';
import { createMessagesSpeech } from './native-messages.ts';

/** The version that clients name which name none. */
const VERSION = '2023-06-01';
const HEADER = /^[ -~]{1,2048}$/;
/** Parts that no chat request has. */
const LOST = /"cache_control"|"citations"|"redacted_thinking"|"signature":\s*"(?!tg[12]\.|")/;
const SEALED = /"tg[12]\./;

/** Anthropic's Messages API, as providers speak it. */
export const MESSAGES_WIRE: NativeWire = {
  name: 'messages',
  path: MESSAGES_PATH,
  cap: 'max_tokens',
  prompt: 'messages',
  headers({ 'anthropic-version': version, 'anthropic-beta': beta }) {
    return {
      'anthropic-version': typeof version === 'string' && HEADER.test(version) ? version : VERSION,
      ...(typeof beta === 'string' && HEADER.test(beta) ? { 'anthropic-beta': beta } : {}),
    };
  },
  changed({ metadata, messages }, text) {
    const changes: Record<string, string | null> = {};
    // It tells an account, a device and a session, which are nobody's business at a provider.
    if (isObject(metadata) && typeof metadata['user_id'] === 'string')
      changes['metadata'] = JSON.stringify({ ...metadata, user_id: hash('sha256', metadata['user_id']).slice(0, 32) });
    if (SEALED.test(text)) changes['messages'] = JSON.stringify(withoutSealed(messages as readonly Turn[]));
    return changes;
  },
  hidesPrompt({ tools, mcp_servers: servers, messages }) {
    return (
      (Array.isArray(servers) && servers.length > 0) ||
      (Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool))) ||
      holds(messages, hasDocument)
    );
  },
  loses: (_asked, text) => LOST.test(text),
  speech: createMessagesSpeech,
};

interface Turn {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly [member: string]: unknown }[];
}

/** A document that is not written out in the request: its text or its pages are more than its bytes. */
const hasDocument = ({ type, source }: Readonly<Record<string, unknown>>): boolean =>
  type === 'document' && !(isObject(source) && (source['type'] === 'text' || source['type'] === 'content'));

/** A tool of a type of its own is Anthropic's. Those that a client runs have a few names. */
const runsThere = ({ type }: Readonly<Record<string, unknown>>): boolean =>
  typeof type === 'string' && type !== 'custom' && !CLIENT_TOOLS.some(({ prefix }) => type.startsWith(prefix));

/** Thinking that this gateway signed is refused by a provider that signs its own. */
function withoutSealed(messages: readonly Turn[]): readonly Turn[] {
  return messages.flatMap((turn) => {
    if (typeof turn.content === 'string') return [turn];
    const content = turn.content.filter(({ type, signature }) => type !== 'thinking' || !isSealedHere(signature));
    return content.length === 0 && turn.content.length > 0 ? [] : [{ ...turn, content }];
  });
}
