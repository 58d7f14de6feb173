import { isObject } from '#wire';
import { ANTHROPIC_VERSION, MESSAGES_PATH } from '#config';
import type { Lists, NativeWire } from '../native/native-wire.ts';
import { holds } from '../native/native-size.ts';
import { plainId, isSealedHere } from '../chat/echo-fields.ts';
import { CLIENT_TOOLS } from './client-tools.ts';
import { createMessagesSpeech } from './native-messages.ts';
import { userDigest } from './user-digest.ts';

type Json = Readonly<Record<string, unknown>>;

const HEADER = /^[ -~]{1,2048}$/;
/** Parts that a chat request cannot have. */
const LOST = /"cache_control"|"citations"(?!\s*:\s*null)|"redacted_thinking"|"signature":\s*"(?!tg[12]\.|")/;
/** Something that this gateway sealed: thinking, or the id of a call. */
const SEALED = /"tg(?:[12]\.|3_)/;

/** JSON may escape the letters of a key. */
const MAY_HAVE_TTL = /"ttl"|\\u00(?:74|6c)/i;
/**
 * Betas that change what a call costs. Some have another price of a token, or use other models at their prices. Others
 * add something to the prompt that is not in the request, so that the lock would be too small. All other betas pass,
 * because clients ask for new ones with every version, and fail without them.
 */
const COSTLY_BETA = new RegExp(
  '^(?:context-[0-9]+[km]|extended-cache-ttl|fast-mode|speed|priority|service-tier|inference-geo|data-residency|' +
    'user-profiles-billing|server-side-fallback|fallback|advisor|skills|' +
    'compact|message-threads|agent-memory|managed-agents|dreaming)(?:-|$)',
  'i',
);
const BETA_NAME = /^[a-z0-9][a-z0-9._-]{0,127}$/i;
const FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'metadata',
  'stop_sequences',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'tools',
  'tool_choice',
  'thinking',
  'container',
  'context_management',
  'mcp_servers',
  'output_config',
  'output_format',
  'cache_control',
]);
/** Fields that may contain `cache_control`. */
const CACHED: ReadonlySet<string> = new Set(['messages', 'system', 'tools', 'cache_control']);

/** Anthropic's Messages API, as providers speak it. */
export const MESSAGES_WIRE: NativeWire = {
  name: 'messages',
  path: MESSAGES_PATH,
  cap: 'max_tokens',
  prompt: 'messages',
  isRetold: () => false,
  fields: FIELDS,
  headers({ 'anthropic-version': version, 'anthropic-beta': beta }, lists) {
    const asked = typeof beta === 'string' && HEADER.test(beta) ? beta.split(/[ ,]+/).filter((one) => one !== '') : [];
    const passes = (one: string) =>
      (BETA_NAME.test(one) && !COSTLY_BETA.test(one)) || lists('anthropic-beta') || lists(one);
    const betas = asked.filter(passes);
    return {
      sent: {
        'anthropic-version': typeof version === 'string' && HEADER.test(version) ? version : ANTHROPIC_VERSION,
        ...(betas.length > 0 ? { 'anthropic-beta': betas.join(',') } : {}),
      },
      dropped: asked.filter((one) => !passes(one)),
    };
  },
  changed(asked, text, lists) {
    const { metadata, messages } = asked;
    const sent: Record<string, string | null> = {};
    const dropped: string[] = [];
    if (isObject(metadata) && typeof metadata['user_id'] === 'string')
      sent['metadata'] = JSON.stringify({ ...metadata, user_id: userDigest(metadata['user_id']) });
    const turns = SEALED.test(text) ? withoutSealed(messages as readonly Turn[]) : messages;
    if (turns !== messages) sent['messages'] = JSON.stringify(turns);
    const management = withoutCompaction(asked['context_management'], lists, dropped);
    if (management !== undefined) sent['context_management'] = management;
    if (MAY_HAVE_TTL.test(text) && !lists('cache_control.ttl'))
      for (const [field, value] of Object.entries({ ...asked, messages: turns })) {
        if (!CACHED.has(field)) continue;
        const plain = withPlainCache({ [field]: value })[field];
        if (plain === value) continue;
        sent[field] = JSON.stringify(plain);
        if (!dropped.includes('cache_control.ttl')) dropped.push('cache_control.ttl');
      }
    return { sent, dropped };
  },
  hidesPrompt({ tools, mcp_servers: servers, messages }) {
    return (
      (Array.isArray(servers) && servers.length > 0) ||
      (Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool))) ||
      holds(messages, hasDocument)
    );
  },
  loses: (text) => LOST.test(text),
  speech: createMessagesSpeech,
};

/** Members that are data. Providers do not look for `cache_control` in them. */
const DATA: ReadonlySet<string> = new Set(['input', 'input_schema']);

/**
 * Removes cache times other than the usual one, because longer times have a higher price. Returns the same object if
 * nothing changes.
 */
function withPlainCache(value: Json): Json {
  let changed: Record<string, unknown> | null = null;
  for (const [name, member] of Object.entries(value)) {
    const plain = plainCache(name, member);
    if (plain !== member) (changed ??= { ...value })[name] = plain;
  }
  return changed ?? value;
}

function plainCache(name: string, member: unknown): unknown {
  if (DATA.has(name)) return member;
  if (Array.isArray(member)) {
    const plain = (member as unknown[]).map((element) => plainCache('', element));
    return plain.some((element, i) => element !== member[i]) ? plain : member;
  }
  if (!isObject(member)) return member;
  const { ttl, ...mark } = member;
  if (name === 'cache_control' && ttl !== undefined && ttl !== '5m') return mark;
  return withPlainCache(member);
}

const COMPACTION = /^compact_([0-9]{4})([0-9]{2})([0-9]{2})$/;

/**
 * JSON text of `context_management` without the edits that compact the conversation, unless the model lists their
 * beta. Compaction reads the conversation once more, and `usage` does not count that. Returns null if no edit is
 * left: the beta of the field may have been dropped too, and a provider refuses the field without it. Returns
 * undefined if nothing changes.
 */
function withoutCompaction(management: unknown, lists: Lists, dropped: string[]): string | null | undefined {
  if (!isObject(management) || !Array.isArray(management['edits'])) return undefined;
  const all = management['edits'] as readonly unknown[];
  const edits = all.filter((edit) => {
    const type = isObject(edit) ? edit['type'] : null;
    if (typeof type !== 'string' || !type.startsWith('compact')) return true;
    if (lists('anthropic-beta') || lists(type.replace(COMPACTION, 'compact-$1-$2-$3'))) return true;
    return false;
  });
  if (edits.length === all.length) return undefined;
  dropped.push('context_management.compact');
  return edits.length === 0 ? null : JSON.stringify({ ...management, edits });
}

interface Turn {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly [member: string]: unknown }[];
}

/**
 * Whether a block is a document that is not plain text in the request. Its text or pages may have more tokens than
 * the request has bytes.
 */
const hasDocument = ({ type, source }: Json): boolean =>
  type === 'document' && !(isObject(source) && (source['type'] === 'text' || source['type'] === 'content'));

/** Whether a tool runs at Anthropic. Every tool with a type of Anthropic does, except the few that a client runs. */
const runsThere = ({ type }: Json): boolean =>
  typeof type === 'string' && type !== 'custom' && !CLIENT_TOOLS.some(({ prefix }) => type.startsWith(prefix));

/**
 * Removes thinking that this gateway signed, because a provider that signs its own thinking refuses it. Sealed ids of
 * calls become short.
 */
function withoutSealed(messages: readonly Turn[]): readonly Turn[] {
  return messages.flatMap((turn) => {
    if (typeof turn.content === 'string') return [turn];
    const content = turn.content
      .filter(({ type, signature }) => type !== 'thinking' || !isSealedHere(signature))
      .map(withPlainId);
    return content.length === 0 && turn.content.length > 0 ? [] : [{ ...turn, content }];
  });
}

const withPlainId = <B extends Json>(block: B): B => {
  const { type, id, tool_use_id: used } = block;
  if (type === 'tool_use' && typeof id === 'string') return { ...block, id: plainId(id) };
  if (type === 'tool_result' && typeof used === 'string') return { ...block, tool_use_id: plainId(used) };
  return block;
};
