import { isObject, type JsonObject } from '#wire';
import { failedByItsOwnWords, isError, malformed } from '#wire/replies';
import {
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
import { isCount, withCounts } from '../chat/reply/chat-usage.ts';
import { hostedTool, isSearchTool, type PaidExtra } from '../chat/price/paid-extras.ts';
import { searchesOf, searchLimitAt } from '../chat/price/priced-parts.ts';
import { isPlainFile } from '../chat/request/prompt-size.ts';
import { soundOf } from '../chat/request/sound.ts';
import { isContainerRun, withoutContainers } from './decode-request.ts';
import { costNamed } from './response-object.ts';

/** Thinking that this gateway did not seal. */
const LOST = /"encrypted_content":\s*"(?!tg[12]\.|")/;
const OF_THE_CLIENT: ReadonlySet<unknown> = new Set([
  'function',
  'custom',
  'namespace',
  'local_shell',
  'shell',
  'apply_patch',
]);

const FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'include',
  'max_output_tokens',
  'max_tool_calls',
  'parallel_tool_calls',
  'prompt_cache_key',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
  'metadata',
]);

export const RESPONSES_PASSTHROUGH: Passthrough = {
  name: 'responses',
  cap: 'max_output_tokens',
  prompt: 'input',
  fields: FIELDS,
  isRetold: isContainerRun,
  searchLimit: 'max_tool_calls',
  changed({ input, metadata, store, background, tools, max_tool_calls: calls }, _text, _lists, offer, refused) {
    const callCount = isCount(calls) ? calls : null;
    const limit = searchLimitAt(offer, callCount);
    const isLimited =
      limit !== null &&
      limit !== callCount &&
      searches({ tools, input }) &&
      !(callCount === null && refused.has(offer, 'max_tool_calls'));
    const inputItems = Array.isArray(input) ? withPlainIds(withoutUnknown(withoutContainers(input))) : input;
    const sent = {
      // `metadata` is for the gateway's own logs.
      ...(metadata === undefined ? {} : { metadata: null }),
      // The gateway makes responses in the background, not the provider.
      ...(background === undefined ? {} : { background: null }),
      // All consumers share the account at a provider, so it must store nothing. Without the field it would store.
      ...(store === false ? {} : { store: 'false' }),
      ...(inputItems === input ? {} : { input: JSON.stringify(inputItems) }),
      // Without a limit there is no highest price.
      ...(isLimited ? { max_tool_calls: String(limit) } : {}),
    };
    const items = Array.isArray(input) ? (input as unknown[]) : [];
    return {
      sent,
      dropped: [
        ...(items.some(isContainerRun) ? ['container_id'] : []),
        // What is only named was never there.
        ...(items.some((item) => isUnknownThinking(item) && isSealed(item)) ? ['reasoning'] : []),
      ],
      added: isLimited && callCount === null ? ['max_tool_calls'] : [],
    };
  },
  hidesPrompt: ({ input }) => holds(input, hidesTokens),
  growsPrompt: ({ tools, input }) => hasHostedTool({ tools }) || holds(input, hasHostedTool),
  extras({ tools, input }) {
    const extras = paidTools(tools, 'tools');
    if (Array.isArray(input))
      (input as unknown[]).forEach((item, index) => {
        const at = `input[${index}]`;
        // They are only in the history of the conversation, so leaving one out would change what was said.
        holds(item, ({ tools: inside }) => {
          extras.push(...paidTools(inside, at).map(({ tool: _tool, ...extra }) => ({ ...extra, at })));
          return false;
        });
      });
    return extras;
  },
  asks({ tools, input, max_tool_calls: calls }) {
    return { webSearches: searchesOf(searches({ tools, input }) ? [isCount(calls) ? calls : null] : []) };
  },
  loses: (text) => LOST.test(text),
  decoder: (model) => createResponsesDecoder(model),
};

/** Whether a request has a tool that searches the web, also in a namespace of tools or in an item that loads tools. */
const searches = ({ tools, input }: JsonObject): boolean => hasSearch({ tools }) || holds(input, hasSearch);

const hasSearch = ({ tools }: JsonObject): boolean => Array.isArray(tools) && (tools as unknown[]).some(isSearch);

const isSearch = (tool: unknown): boolean =>
  isObject(tool) && ((runsThere(tool) && isSearchTool(tool['type'])) || hasSearch(tool));

/** Tools that OpenAI does not charge for: the client runs the first two, and the last chooses among tools. */
const FREE_TOOL = /^(?:computer|computer_use(?:_preview)?|tool_search)$/;

/** The tools in a list of them, and in its namespaces, that run at the provider for money. */
function paidTools(tools: unknown, at: string): PaidExtra[] {
  if (!Array.isArray(tools)) return [];
  return (tools as unknown[]).flatMap((tool, index): PaidExtra[] => {
    const here = `${at}[${index}]`;
    if (!isObject(tool)) return [];
    const { type } = tool;
    if (type === 'namespace')
      return paidTools(tool['tools'], `${here}.tools`).map(({ tool: _tool, ...extra }) => extra);
    if (!runsThere(tool) || FREE_TOOL.test(String(type))) return [];
    // What another server does for the model cannot be left out: the translated path refuses it, too.
    return [hostedTool(type, here, type === 'mcp' ? {} : { tool })];
  });
}

const THINKING = 'reasoning.encrypted_content';
/** Some models do not give their thinking in encrypted form, and refuse to be asked for it. */
const INCLUDE_THINKING = 'include.encrypted_content';

/**
 * The Responses API for a request whose response is told as this gateway's own. `calledOf`: members that its response
 * has instead of the provider's. If the response is kept, the provider is asked for the thinking: only the provider can
 * read it, and later requests that name the response need it.
 */
export function ownPassthrough(calledOf: (callId: string) => JsonObject, isKept: boolean): Passthrough {
  return {
    ...RESPONSES_PASSTHROUGH,
    changed(requestBody, text, lists, offer, refused) {
      const changed = RESPONSES_PASSTHROUGH.changed(requestBody, text, lists, offer, refused);
      const include = Array.isArray(requestBody['include']) ? (requestBody['include'] as unknown[]) : [];
      if (!isKept || include.includes(THINKING) || refused.has(offer, INCLUDE_THINKING)) return changed;
      return {
        ...changed,
        sent: { ...changed.sent, include: JSON.stringify([...include, THINKING]) },
        added: [...changed.added!, INCLUDE_THINKING],
      };
    },
    decoder: (model, callId) => createResponsesDecoder(model, calledOf(callId)),
  };
}

const hidesTokens = (part: JsonObject): boolean =>
  (part['type'] === 'input_file' && !isPlainFile(part)) ||
  (part['type'] === 'input_audio' && soundOf(part['input_audio']) === null);

const hasHostedTool = ({ tools }: JsonObject): boolean =>
  Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool));

/** Whether a tool runs at the provider. A shell runs at the client, unless it is in a container. */
const runsThere = ({ type, environment, tools }: JsonObject): boolean =>
  !OF_THE_CLIENT.has(type) ||
  (isObject(environment) && environment['type'] !== 'local') ||
  (type === 'namespace' && hasHostedTool({ tools }));

/**
 * Whether an item is thinking that a provider cannot use. A provider refuses thinking that this gateway sealed.
 * Thinking that is only named was never stored, so the provider does not find it.
 */
const isUnknownThinking = (item: unknown): boolean => {
  if (!isObject(item) || item['type'] !== 'reasoning') return false;
  if (isSealed(item)) return isSealedHere(item['encrypted_content']);
  const { content } = item;
  return !(Array.isArray(content) && content.length > 0);
};

const isSealed = (item: unknown): boolean =>
  isObject(item) && typeof item['encrypted_content'] === 'string' && item['encrypted_content'] !== '';

const withoutUnknown = (input: readonly unknown[]): readonly unknown[] =>
  input.some(isUnknownThinking) ? input.filter((item) => !isUnknownThinking(item)) : input;

/** Sealed ids of calls become short. Returns the same array without such an id. */
function withPlainIds(input: readonly unknown[]): readonly unknown[] {
  const plain = input.map((item) => {
    const id = isObject(item) ? item['call_id'] : null;
    return typeof id === 'string' && plainId(id) !== id ? { ...(item as JsonObject), call_id: plainId(id) } : item;
  });
  return plain.some((item, at) => item !== input[at]) ? plain : input;
}

/**
 * Most characters of finished items that are kept in case the reply is cut: as many as of a reply that is not
 * streamed. Later items are left out.
 */
const KEPT_MAX = 2 * 1024 * 1024;
/** The states of a response that has its answer. Any other one, also one that nobody knows, has none. */
const ANSWERED: ReadonlySet<string> = new Set(['completed', 'incomplete']);
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/**
 * Reads the replies of OpenAI's Responses API. The client's response has this name of the model, and the `ownMembers`
 * instead of the provider's.
 */
export function createResponsesDecoder(model: string, ownMembers: JsonObject = {}): NativeDecoder {
  return new ResponsesDecoder({ model, ...ownMembers });
}

const OPENINGS: ReadonlySet<string> = new Set([
  'response.created',
  'response.queued',
  'response.in_progress',
  'response.content_part.added',
  'response.reasoning_summary_part.added',
]);

class ResponsesDecoder implements NativeDecoder {
  readonly usageMember = 'usage';
  finish: string | null = null;
  readonly #own: JsonObject;
  #usage: JsonObject | null = null;
  serviceTier: string | null = null;
  /** Those in the finished items. */
  webSearches = 0;
  #held: { readonly type: string; readonly event: JsonObject; readonly text: string } | null = null;
  #sequence = 0;
  /** The response as it began, and its finished items. A cut reply is made of them. */
  #begun: JsonObject = {};
  readonly #items: unknown[] = [];
  #keptLength = 0;

  constructor(ownMembers: JsonObject) {
    this.#own = ownMembers;
  }

  get claim(): JsonObject | null {
    if (this.#usage === null) return null;
    return {
      ...claimOf(this.#usage),
      server_tool_use: { web_search_requests: this.webSearches },
    };
  }

  get isOver(): boolean {
    return this.#held !== null;
  }

  take(type: string, event: JsonObject, text: string): string | null {
    if (typeof event['sequence_number'] === 'number') this.#sequence = event['sequence_number'] + 1;
    if (type === 'error') throw failedByItsOwnWords(isObject(event['error']) ? event['error'] : event);
    const { response } = event;
    if (ENDS.has(type)) {
      if (!isObject(response)) throw malformed('its last event has no response');
      this.#takeResponse(response);
      this.#held = { type, event, text };
      return null;
    }
    if (type === 'response.output_item.done') {
      this.#keptLength += text.length;
      if (this.#keptLength <= KEPT_MAX) this.#items.push(event['item']);
      this.#countSearch(event['item']);
    }
    if (!isObject(response)) return text;
    if (text.length <= KEPT_MAX) this.#begun = response;
    // While a response runs, it names the tier that was asked for, and at its end the tier that served.
    if (typeof response['service_tier'] === 'string') this.serviceTier = response['service_tier'];
    return 'model' in response ? withMembersOf(text, event, 'response', this.#own) : text;
  }

  addSize(type: string, { delta, item }: JsonObject, size: OutputSize): void {
    if (type.endsWith('.delta')) return size.text(delta);
    if (type !== 'response.output_item.done' || !isObject(item)) return;
    if (!TOLD_BY_DELTAS.has(item['type'])) return addItem(item, size);
    // No delta has the content of other items.
    size.frame();
    size.sealed(item['encrypted_content']);
  }

  opens(type: string, { item }: JsonObject): boolean {
    if (type !== 'response.output_item.added') return OPENINGS.has(type);
    return isObject(item) && (item['type'] === 'message' || item['type'] === 'reasoning');
  }

  last(end: NativeEnd, passed: number | null): string {
    const held = this.#held;
    if (end.isBroken || held === null) {
      const next = Math.max(this.#sequence, (passed ?? -1) + 1);
      const response = this.#cutResponse(this.#items, end);
      const data = { type: 'response.incomplete', sequence_number: next, response };
      return eventText(data.type, JSON.stringify(data));
    }
    return eventText(held.type, withMembersOf(held.text, held.event, 'response', this.#toldMembers(end)));
  }

  takeUsage(claimedUsage: JsonObject): void {
    this.#usage = withCounts(claimedUsage);
  }

  takeWhole(reply: JsonObject, size: OutputSize): void {
    const { output } = reply;
    if (!Array.isArray(output)) throw malformed('its reply has no output');
    this.#takeResponse(reply);
    for (const item of output as unknown[]) {
      this.#countSearch(item);
      addItem(item, size);
    }
  }

  whole(text: string, reply: JsonObject, end: NativeEnd): string {
    return withMembersOf(text.trim(), reply, null, this.#toldMembers(end));
  }

  cutWhole(writtenText: string, end: NativeEnd): string {
    const content = [{ type: 'output_text', text: writtenText, annotations: [] }];
    const { id = 'resp_cut' } = this.#own as { readonly id?: string };
    // Later requests can name the message of a response that is kept: its id contains that of the response.
    const message = { type: 'message', id: itemIdOf(id), role: 'assistant', status: 'incomplete', content };
    return JSON.stringify({ id, ...this.#cutResponse(writtenText === '' ? [] : [message], end) });
  }

  #takeResponse(response: JsonObject): void {
    if (isObject(response['usage'])) this.takeUsage(response['usage']);
    const { status, incomplete_details: details, error, service_tier: tier } = response;
    this.serviceTier = typeof tier === 'string' ? tier : null;
    if (isObject(error) && isError(error)) throw failedByItsOwnWords(error);
    if (typeof status === 'string' && !ANSWERED.has(status))
      throw failedByItsOwnWords({ message: `the response is ${status}` });
    const reason = isObject(details) ? details['reason'] : null;
    if (typeof reason === 'string') this.finish = reason;
    else if (typeof status === 'string') this.finish = status;
    // An answer of `/responses/compact` has no status.
    else if (response['object'] === 'response.compaction') this.finish = 'completed';
  }

  /** Opening a page, and looking for a text in it, is no search. */
  #countSearch(item: unknown): void {
    if (!isObject(item)) return;
    const { type, action } = item;
    if (type !== 'web_search_call') return;
    if (!isObject(action) || action['type'] === undefined || action['type'] === 'search') this.webSearches++;
  }

  #toldMembers(end: NativeEnd): JsonObject {
    return { ...this.#own, usage: shownResponse(this.#usage ?? {}, end) };
  }

  #cutResponse(output: readonly unknown[], end: NativeEnd): JsonObject {
    return {
      ...this.#begun,
      object: 'response',
      ...this.#own,
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output,
      usage: shownResponse(this.#usage ?? {}, end),
      ...noteOf(end.cut),
    };
  }
}

const itemIdOf = (responseId: string): string => `${responseId.replace(/^resp/, 'msg')}_0`;

const TOLD_BY_DELTAS: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call', 'reasoning']);
/** An item whose `result` is a picture that was made. */
const PICTURE = 'image_generation_call';

function addItem(item: unknown, size: OutputSize): void {
  if (!isObject(item)) return;
  const { type, content, summary, name, arguments: argumentValue, input, encrypted_content: sealed } = item;
  if (type === PICTURE) size.pictures++;
  if (!TOLD_BY_DELTAS.has(type)) return size.json(item);
  for (const parts of [content, summary])
    for (const part of Array.isArray(parts) ? (parts as unknown[]) : []) {
      if (!isObject(part)) continue;
      size.text(part['text']);
      size.text(part['refusal']);
    }
  size.text(name);
  size.text(argumentValue);
  size.text(input);
  size.frame();
  size.sealed(sealed);
}

function claimOf(usage: JsonObject): JsonObject {
  const { input_tokens: prompt, output_tokens: completion, total_tokens: total } = usage;
  const { input_tokens_details: ofPrompt, output_tokens_details: ofCompletion } = usage;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    prompt_tokens_details: ofPrompt,
    completion_tokens_details: ofCompletion,
  };
}

const NO_CACHE = { cached_tokens: 0, cache_write_tokens: 0 };

/** The usage of a reply with its cost. If the billed usage differs from the claim, it has the billed numbers. */
function shownResponse(responseMembers: JsonObject, { usage, cost, isCorrected }: NativeEnd): JsonObject {
  const { input_tokens_details: details } = responseMembers;
  // Clients that read the API strictly fail without both members.
  const claimed = isObject(details)
    ? { ...responseMembers, input_tokens_details: { ...NO_CACHE, ...details } }
    : responseMembers;
  const costMembers = { ...cost, ...costNamed(cost) };
  if (!isCorrected) return { ...claimed, ...costMembers };
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total, estimated } = usage;
  const billed = { input_tokens: input, output_tokens: output, total_tokens: total };
  return { ...claimed, ...billed, ...(estimated === undefined ? {} : { estimated }), ...costMembers };
}
