import { isObject, type JsonObject } from '#wire';
import type { Offer } from '#catalog';
import { NATIVE_APIS } from '#config';
import { failedByItsOwnWords, malformed } from '#wire/replies';
import {
  type Lists,
  type Passthrough,
  eventText,
  type NativeEnd,
  type NativeDecoder,
  noteOf,
  withMembersOf,
} from '../native/passthrough.ts';
import type { OutputSize } from '../native/output-size.ts';
import { holds } from '../native/native-request.ts';
import { plainId } from '../chat/reply/echo-fields.ts';
import { isSealedHere } from '../chat/reply/sealed-thinking.ts';
import type { Block } from './schema.ts';
import { CLIENT_TOOLS } from './tools.ts';
import { userDigest } from './decode-request.ts';
import { isCount, unfallen, withCounts } from '../chat/reply/chat-usage.ts';
import { asksHour, withUsualTimes } from '../chat/price/cache-times.ts';
import { hostedTool, isSearchTool, PAID_BETA, type PaidExtra } from '../chat/price/paid-extras.ts';
import { prices, searchesOf, searchLimitAt } from '../chat/price/priced-parts.ts';
import { event } from './message-blocks.ts';

/** Of requests that name none. */
const { 'anthropic-version': API_VERSION } = NATIVE_APIS.messages.headers;
const HEADER = /^[ -~]{1,2048}$/;
/** Parts that a chat request cannot have. */
const LOST = /"cache_control"|"citations"(?!\s*:\s*(?:null|\[\s*\]))|"signature":\s*"(?!tg[12]\.|")/;
const REDACTED = /"redacted_thinking"/g;
const REDACTED_HERE = /"data":\s*"tg2\./g;
/** Something that this gateway sealed: thinking, or the id of a call. */
const SEALED = /"tg(?:[12]\.|3_)/;

/** JSON may escape the letters of a key. */
const MAY_HAVE_TTL = /"ttl"|\\u00(?:74|6c)/i;
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
  'context_management',
  'output_config',
  'output_format',
  'cache_control',
]);
/** Fields that may contain `cache_control`. */
const CACHED: ReadonlySet<string> = new Set(['messages', 'system', 'tools', 'cache_control']);

export const MESSAGES_PASSTHROUGH: Passthrough = {
  name: 'messages',
  cap: 'max_tokens',
  prompt: 'messages',
  fields: FIELDS,
  headers({ 'anthropic-version': version, 'anthropic-beta': beta }, lists) {
    const betaNames =
      typeof beta === 'string' && HEADER.test(beta) ? beta.split(/[ ,]+/).filter((one) => one !== '') : [];
    const passes = (one: string) =>
      (BETA_NAME.test(one) && !PAID_BETA.test(one)) || lists('anthropic-beta') || lists(one);
    const betas = betaNames.filter(passes);
    return {
      sent: {
        'anthropic-version': typeof version === 'string' && HEADER.test(version) ? version : API_VERSION,
        ...(betas.length > 0 ? { 'anthropic-beta': betas.join(',') } : {}),
      },
      dropped: betaNames.filter((one) => !passes(one)),
    };
  },
  searchLimit: 'max_uses',
  changed(requestBody, text, lists, offer, refused) {
    const { metadata, messages } = requestBody;
    const sent: Record<string, string | null> = {};
    const dropped: string[] = [];
    if (isObject(metadata) && typeof metadata['user_id'] === 'string')
      sent['metadata'] = JSON.stringify({ ...metadata, user_id: userDigest(metadata['user_id']) });
    const turns = SEALED.test(text) ? withoutSealed(messages as readonly Turn[], dropped) : messages;
    if (turns !== messages) sent['messages'] = JSON.stringify(turns);
    const management = withoutCompaction(requestBody['context_management'], lists, dropped);
    if (management !== undefined) sent['context_management'] = management;
    const mayAdd = !refused.has(offer, 'max_uses');
    const tools = withSearchesMax(requestBody['tools'], offer, mayAdd);
    if (tools !== requestBody['tools']) sent['tools'] = JSON.stringify(tools);
    if (MAY_HAVE_TTL.test(text) && !lists('cache_control.ttl') && !prices(offer, 'input_cache_write_1h'))
      for (const [field, value] of Object.entries({ ...requestBody, messages: turns, tools })) {
        if (!CACHED.has(field)) continue;
        const { [field]: usual } = withUsualTimes({ [field]: value });
        if (usual === value) continue;
        sent[field] = JSON.stringify(usual);
        if (!dropped.includes('cache_control.ttl')) dropped.push('cache_control.ttl');
      }
    return { sent, dropped, added: mayAdd && tools !== requestBody['tools'] ? ['max_uses'] : [] };
  },
  hidesPrompt: ({ messages }) => holds(messages, hasDocument),
  growsPrompt: ({ tools, mcp_servers: servers }) =>
    (Array.isArray(servers) && servers.length > 0) ||
    (Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool))),
  extras({ tools, mcp_servers: servers }) {
    const extras: PaidExtra[] = [];
    if (Array.isArray(servers) && servers.length > 0) extras.push(SERVERS);
    if (Array.isArray(tools))
      (tools as unknown[]).forEach((tool, index) => {
        if (!isObject(tool) || !runsThere(tool) || FREE_TOOL.test(String(tool['type']))) return;
        const at = `tools[${index}]`;
        // A toolset without its server is refused, as on the translated path.
        extras.push(tool['type'] === 'mcp_toolset' ? { ...SERVERS, at } : hostedTool(tool['type'], at, { tool }));
      });
    return extras;
  },
  asks({ tools, messages, system, cache_control: mark }, text) {
    return {
      cacheHour: () => MAY_HAVE_TTL.test(text) && asksHour({ cache_control: mark, messages, system, tools }),
      webSearches: searchesOf(Array.isArray(tools) ? (tools as unknown[]).filter(isSearch).map(usesOf) : []),
    };
  },
  loses: (text) => LOST.test(text) || timesIn(text, REDACTED) > timesIn(text, REDACTED_HERE),
  decoder: createMessagesDecoder,
};

const timesIn = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

/** MCP servers that the provider would call. */
const SERVERS: PaidExtra = { kind: 'tool', names: ['mcp_servers'], meter: null, at: 'mcp_servers' };
/** Tools of the provider that it does not charge for: they choose among the tools of the request. */
const FREE_TOOL = /^tool_search_tool/;

const isSearch = (tool: unknown): tool is JsonObject => isObject(tool) && runsThere(tool) && isSearchTool(tool['type']);

/** How often the request allows a tool to be used; null if it does not say. */
const usesOf = ({ max_uses: uses }: JsonObject): number | null => (isCount(uses) ? uses : null);

/**
 * The tools. If the offer has a price for searches, each tool that searches gets a limit, because without one there
 * is no highest price. `mayAdd`: false for an offer that refuses a limit, which then gets only the client's.
 */
function withSearchesMax(tools: unknown, offer: Offer, mayAdd: boolean): unknown {
  if (!Array.isArray(tools) || searchLimitAt(offer, null) === null) return tools;
  const limited = (tools as unknown[]).map((tool) => {
    if (!isSearch(tool) || (!mayAdd && usesOf(tool) === null)) return tool;
    const most = searchLimitAt(offer, usesOf(tool));
    return tool['max_uses'] === most ? tool : { ...tool, max_uses: most };
  });
  return limited.some((tool, index) => tool !== tools[index]) ? limited : tools;
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
    return lists('anthropic-beta') || lists(type.replace(COMPACTION, 'compact-$1-$2-$3'));
  });
  if (edits.length === all.length) return undefined;
  dropped.push('context_management.compact');
  return edits.length === 0 ? null : JSON.stringify({ ...management, edits });
}

interface Turn {
  readonly role: string;
  readonly content: string | readonly Block[];
}

/**
 * Whether a block is a document that is not plain text in the request. Its text or pages may have more tokens than
 * the request has bytes.
 */
const hasDocument = ({ type, source }: JsonObject): boolean =>
  type === 'document' && !(isObject(source) && (source['type'] === 'text' || source['type'] === 'content'));

/** Whether a tool runs at Anthropic. Every tool with a type of Anthropic does, except the few that a client runs. */
const runsThere = ({ type }: JsonObject): boolean =>
  typeof type === 'string' && type !== 'custom' && !CLIENT_TOOLS.some(({ prefix }) => type.startsWith(prefix));

/**
 * Removes thinking that this gateway signed, because a provider that signs its own thinking refuses it: `dropped` gets
 * the types of its blocks. Sealed ids of calls become short.
 */
function withoutSealed(messages: readonly Turn[], dropped: string[]): readonly Turn[] {
  const goes = ({ type, signature, data }: Block): boolean => {
    if (!isThinking(type) || !isSealedHere(signature ?? data)) return true;
    if (!dropped.includes(type)) dropped.push(type);
    return false;
  };
  return messages.flatMap((turn) => {
    if (typeof turn.content === 'string') return [turn];
    const content = turn.content.filter(goes).map(withPlainId);
    return content.length === 0 && turn.content.length > 0 ? [] : [{ ...turn, content }];
  });
}

const isThinking = (type: string): boolean => type === 'thinking' || type === 'redacted_thinking';

const withPlainId = <B extends JsonObject>(block: B): B => {
  const { type, id, tool_use_id: used } = block;
  if (type === 'tool_use' && typeof id === 'string') return { ...block, id: plainId(id) };
  if (type === 'tool_result' && typeof used === 'string') return { ...block, tool_use_id: plainId(used) };
  return block;
};

/** Reads the replies of Anthropic's Messages API. `model` is the name that they carry. */
export function createMessagesDecoder(model: string): NativeDecoder {
  return new MessagesDecoder(model);
}

class MessagesDecoder implements NativeDecoder {
  readonly usageMember = 'usage';
  finish: string | null = null;
  isOver = false;
  webSearches = 0;
  readonly #model: string;
  /**
   * The latest value of each count. A stream states some counts at its beginning, which may be estimates, and all at
   * its end.
   */
  #usage: JsonObject = {};
  #held: JsonObject | null = null;
  #open: unknown = null;

  constructor(model: string) {
    this.#model = model;
  }

  get claim(): JsonObject | null {
    return claimOf(this.#usage);
  }

  get serviceTier(): string | null {
    const { service_tier: tier } = this.#usage;
    return typeof tier === 'string' ? tier : null;
  }

  take(type: string, eventMembers: JsonObject, text: string): string | null {
    switch (type) {
      case 'message_start': {
        const { message } = eventMembers;
        if (!isObject(message)) throw malformed('its stream began without a message');
        this.takeUsage(message['usage']);
        return 'model' in message ? withMembersOf(text, eventMembers, 'message', { model: this.#model }) : text;
      }
      case 'content_block_start':
        this.#open = eventMembers['index'] ?? null;
        if (isSearchBlock(eventMembers['content_block'])) this.webSearches++;
        return text;
      case 'content_block_stop':
        this.#open = null;
        return text;
      case 'message_delta': {
        const before = this.#usage;
        this.takeUsage(eventMembers['usage']);
        const wholeUsage = unerased(before, this.#usage);
        const largestUsage = this.#held === null ? wholeUsage : largerUsage(before, wholeUsage);
        this.#held =
          largestUsage === this.#usage
            ? eventMembers
            : { ...eventMembers, usage: { ...(eventMembers['usage'] as object), ...largestUsage } };
        this.#usage = largestUsage;
        this.#stopped((eventMembers['delta'] as JsonObject | null | undefined)?.['stop_reason']);
        return null;
      }
      case 'message_stop':
        this.isOver = true;
        return null;
      case 'error':
        throw failedByItsOwnWords(eventMembers['error']);
      default:
        return text;
    }
  }

  addSize(type: string, { delta, content_block: block }: JsonObject, size: OutputSize): void {
    if (type === 'content_block_start') return addBlock(block, size);
    if (type !== 'content_block_delta' || !isObject(delta)) return;
    const before = size.texts.length;
    size.text(delta['text']);
    size.text(delta['thinking']);
    size.text(delta['partial_json']);
    if (size.texts.length === before) size.json(delta);
  }

  opens(type: string, { content_block: block }: JsonObject): boolean {
    if (type !== 'content_block_start') return type === 'message_start' || type === 'ping';
    return isObject(block) && (block['type'] === 'text' || block['type'] === 'thinking');
  }

  last(end: NativeEnd): string {
    if (end.isBroken || this.#held === null) return this.#endOfCut(end);
    const { usage: claimedUsage, ...rest } = this.#held;
    const claimMembers = isObject(claimedUsage) ? claimedUsage : {};
    // The counts of a cache may come only at the beginning of the stream.
    const used = shownUsage(end.isCorrected ? { ...claimMembers, ...this.#usage } : claimMembers, end);
    return eventText('message_delta', JSON.stringify({ ...rest, usage: used })) + STOP;
  }

  takeWhole(reply: JsonObject, size: OutputSize): void {
    const { content, usage: claimedUsage, stop_reason: reason } = reply;
    if (!Array.isArray(content)) throw malformed('its reply has no content');
    this.takeUsage(claimedUsage);
    this.#stopped(reason);
    for (const block of content as unknown[]) addBlock(block, size);
  }

  whole(text: string, reply: JsonObject, end: NativeEnd): string {
    const claimedUsage = reply['usage'];
    const used = shownUsage(isObject(claimedUsage) ? claimedUsage : {}, end);
    return withMembersOf(text.trim(), reply, null, { model: this.#model, usage: used });
  }

  cutWhole(writtenText: string, end: NativeEnd): string {
    const message = { id: 'msg_cut', type: 'message', role: 'assistant', model: this.#model };
    const content = writtenText === '' ? [] : [{ type: 'text', text: writtenText }];
    const stop = { stop_reason: 'max_tokens', stop_sequence: null };
    return JSON.stringify({ ...message, content, ...stop, usage: shownUsage(this.#usage, end), ...noteOf(end.cut) });
  }

  takeUsage(claim: unknown): void {
    const claimedUsage = withCounts(claim);
    if (!isObject(claimedUsage)) return;
    const counts: Record<string, unknown> = {};
    for (const name of COUNTS) if (typeof claimedUsage[name] === 'number') counts[name] = claimedUsage[name];
    const { output_tokens_details: details } = claimedUsage;
    const thinking = isObject(details) ? details['thinking_tokens'] : null;
    if (typeof thinking === 'number') counts['output_tokens_details'] = { thinking_tokens: thinking };
    for (const [name, parts] of Object.entries(PARTS_OF_COUNTS)) {
      const claimedCount = claimedUsage[name];
      if (!isObject(claimedCount)) continue;
      const known = parts
        .filter((part) => typeof claimedCount[part] === 'number')
        .map((part) => [part, claimedCount[part]]);
      if (known.length > 0) counts[name] = Object.fromEntries(known);
    }
    if (typeof claimedUsage['service_tier'] === 'string')
      counts['service_tier'] = claimedUsage['service_tier'].slice(0, 32);
    this.#usage = { ...this.#usage, ...counts };
  }

  #stopped(reason: unknown): void {
    if (typeof reason === 'string' && reason !== '') this.finish = reason;
  }

  #endOfCut(end: NativeEnd): string {
    const delta = { stop_reason: 'max_tokens', stop_sequence: null };
    const stop = this.#open === null ? '' : event('content_block_stop', { index: this.#open });
    return stop + event('message_delta', { delta, usage: shownUsage(this.#usage, end), ...noteOf(end.cut) }) + STOP;
  }
}

/** Only these counts are kept, because a stream may send its usage thousands of times, with any other members. */
const COUNTS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
/** Parts of counts that have their own price. */
const PARTS_OF_COUNTS = {
  cache_creation: ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'],
  server_tool_use: ['web_search_requests', 'web_fetch_requests'],
} as const;
const OF_PROMPT = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'cache_creation'] as const;
const OF_OUTPUT = ['output_tokens', 'output_tokens_details', 'server_tool_use'] as const;
const STOP = event('message_stop', {});

/** Whether a block is a search that the provider runs. */
const isSearchBlock = (block: unknown): boolean =>
  isObject(block) && block['type'] === 'server_tool_use' && block['name'] === 'web_search';

/**
 * The output in a block. Results of the provider's tools are not text of the model, and encrypted content is not
 * readable. Both count as other output.
 */
function addBlock(block: unknown, size: OutputSize): void {
  if (!isObject(block)) return;
  const { type, name, input } = block;
  if (type === 'text') return size.text(block['text']);
  if (type === 'thinking') {
    size.text(block['thinking']);
    return size.sealed(block['signature']);
  }
  if (type !== 'tool_use') return size.json(block);
  size.text(name);
  if (isObject(input) && Object.keys(input).length > 0) size.text(JSON.stringify(input));
  size.frame();
}

const sum = (usage: JsonObject, names: readonly string[]): number =>
  names.reduce((total, name) => total + (isCount(usage[name]) ? usage[name] : 0), 0);

const isZero = (value: unknown): boolean =>
  value === 0 || (isObject(value) && Object.values(value).every((part) => part === 0));

/**
 * The usage at the end of a message, in which zeros replace nothing: some providers write them for what they told at
 * the beginning. But tokens that a later count names elsewhere, such as those that a cache gave, count once.
 */
function unerased(before: JsonObject, now: JsonObject): JsonObject {
  let usage = now;
  for (const members of [OF_PROMPT, OF_OUTPUT]) {
    const erased = members.filter((name) => isZero(now[name]) && (before[name] ?? null) !== null);
    if (erased.every((name) => isZero(before[name]))) continue;
    const filled = { ...usage, ...Object.fromEntries(erased.map((name) => [name, before[name]])) };
    if (sum(filled, members) <= sum(before, members)) usage = filled;
  }
  return usage;
}

/** The usage after a second end of a message. A running total never falls, so smaller counts replace no larger ones. */
function largerUsage(before: JsonObject, now: JsonObject): JsonObject {
  const counts = [OF_PROMPT, OF_OUTPUT].map((members) => ({
    was: sum(before, members),
    is: sum(now, members),
    members,
  }));
  return unfallen(before, now, counts);
}

/** The claim in the form of chat. Anthropic does not count cached tokens as input tokens. */
function claimOf(usage: JsonObject): JsonObject | null {
  const { input_tokens: input, output_tokens: output, output_tokens_details: details } = usage;
  if (input === undefined && output === undefined) return null;
  const { cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = usage;
  const prompt = isCount(input) && isCount(read) && isCount(written) ? input + read + written : null;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    completion_tokens_details: { reasoning_tokens: (details as JsonObject | null | undefined)?.['thinking_tokens'] },
    cache_creation: usage['cache_creation'],
    server_tool_use: usage['server_tool_use'],
  };
}

/** The usage of a reply with its cost. If the billed usage differs from the claim, it has the billed numbers. */
function shownUsage(claimed: JsonObject, { usage, cost, isCorrected }: NativeEnd): JsonObject {
  if (!isCorrected) return { ...claimed, ...cost };
  const { prompt_tokens: prompt, completion_tokens: completion, estimated } = usage;
  const count = (value: unknown) => (isCount(value) ? value : 0);
  const read = Math.min(count(claimed['cache_read_input_tokens']), count(prompt));
  const written = Math.min(count(claimed['cache_creation_input_tokens']), count(prompt) - read);
  return {
    ...claimed,
    input_tokens: count(prompt) - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    ...(isObject(claimed['cache_creation']) ? { cache_creation: splitOf(claimed['cache_creation'], written) } : {}),
    output_tokens: completion,
    ...(estimated === undefined ? {} : { estimated }),
    ...cost,
  };
}

/** The tokens that were written to a cache, by their time in it. Together they are at most `written`. */
function splitOf(claimed: JsonObject, written: number): JsonObject {
  let lengthLeft = written;
  return Object.fromEntries(
    Object.entries(claimed).map(([time, value]) => {
      if (!isCount(value)) return [time, value];
      const tokens = Math.min(value, lengthLeft);
      lengthLeft -= tokens;
      return [time, tokens];
    }),
  );
}
