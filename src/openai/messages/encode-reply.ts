import type { JsonObject } from '#wire';
import type { WireRequest } from '../translated/wire-request.ts';
import { argumentsOf, isCutCall, type WireEncoder } from '../translated/wire-encoder.ts';
import { toAnthropicFault } from './errors.ts';
import { isEmpty } from '../chat/reply/echo-fields.ts';
import { type Blocks, CALLER, createBlocks, event, redactedBlock, UNCITED } from './message-blocks.ts';
import { tokenDetails } from '../chat/reply/chat-usage.ts';
import type { ChatEnd, ChatSaid } from '../chat/reply/chat-content.ts';
import type { FinishReason } from '../chat/reply/finish-reason.ts';

interface MessageEncoderOptions {
  readonly id: string;
  readonly model: string;
  /** Estimated tokens of the prompt. A stream states them before the provider reports its usage. */
  readonly promptTokens: () => number;
  readonly stopSequences: readonly string[];
  /** `shown`: text and signature. `sealed`: only a signature, which contains the text. `off`: no thinking. */
  readonly thinking: 'shown' | 'sealed' | 'off';
  readonly request: Pick<WireRequest, 'requestId' | 'seals' | 'toolNames'>;
  /** The request has `context_management`, so its client reads which edits were applied. */
  readonly managesContext: boolean;
}

export function createMessageEncoder(options: MessageEncoderOptions): WireEncoder {
  const { id, model, stopSequences, request } = options;
  const { requestId, toolNames: names } = request;
  let out = '';
  const write = (text: string) => void (out += text);
  // The gateway applies no edits.
  const managed = options.managesContext ? { context_management: { applied_edits: [] } } : {};
  const blocks = createBlocks({ thinking: options.thinking, seals: request.seals, write });

  return {
    begin() {
      const usage = {
        input_tokens: options.promptTokens(),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 1,
        ...UNKNOWN_USAGE,
      };
      const start = {
        id,
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        ...UNSTOPPED,
        ...NOTHING_MORE,
        usage,
      };
      write(event('message_start', { message: start }) + PING);
    },
    text: blocks.text,
    thinking: blocks.thinking,
    members: blocks.members,
    call: (index, callId, name) => blocks.call(index, callId, names.long(name)),
    arguments: blocks.arguments,
    ping: () => write(PING),
    end(end) {
      blocks.close();
      const more = { ...managed, ...moreOf(end) };
      const { count, isCut } = blocks;
      const delta = { ...stopOf(end, stopSequences, { count, isCut }), container: null, stop_details: null };
      write(event('message_delta', { delta, usage: anthropicUsage(end), ...more }) + event('message_stop', {}));
    },
    fail: (fault) => write(event('error', { error: toAnthropicFault(fault), request_id: requestId })),
    take() {
      const written = out;
      out = '';
      return written;
    },
    whole(chatContent, end) {
      const isWhole = ({ arguments: argumentText }: ChatSaid['calls'][number], index: number) =>
        !isCutCall(argumentText, index === chatContent.calls.length - 1, end);
      const calls = chatContent.calls.filter(isWhole);
      const stop = stopOf(end, stopSequences, { count: calls.length, isCut: calls.length < chatContent.calls.length });
      const content = contentOf({ ...chatContent, calls }, options);
      return {
        id,
        type: 'message',
        role: 'assistant',
        model,
        content,
        ...stop,
        ...NOTHING_MORE,
        usage: anthropicUsage(end),
        ...managed,
        ...moreOf(end),
      };
    },
    wholeFailure: (fault) => ({ type: 'error', error: toAnthropicFault(fault), request_id: requestId }),
  };
}

const UNSTOPPED = { stop_reason: null, stop_sequence: null };
/** Members that strict clients of this API require, although they are null. */
const NOTHING_MORE = { container: null, diagnostics: null, stop_details: null };
const PING = event('ping', {});

function moreOf({ tollgate, fault }: ChatEnd): Readonly<Record<string, unknown>> {
  if (tollgate === undefined && fault === null) return {};
  return { tollgate: { ...(tollgate as object | undefined), ...(fault === null ? {} : { note: fault }) } };
}

function contentOf({ thinking, members, text, calls }: ChatSaid, options: MessageEncoderOptions): readonly object[] {
  const { thinking: thinkingForm, request } = options;
  const { seals, toolNames: names } = request;
  const content: object[] = [];
  const isKept = !isEmpty(members);
  const redacted = () => redactedBlock(seals.seal(members));
  if (thinking !== '' && thinkingForm === 'shown') {
    const signing = seals.signing();
    signing.add(thinking);
    content.push({ type: 'thinking', thinking, signature: signing.signature(members) });
  } else if (thinking !== '' && thinkingForm === 'sealed') {
    const signature = seals.seal(isKept ? members : { reasoning_content: thinking });
    content.push({ type: 'thinking', thinking: '', signature });
  } else if (isKept && thinkingForm !== 'off') content.push(redacted());
  if (text !== '') content.push({ type: 'text', text, ...UNCITED });
  for (const { id, name, arguments: argumentText } of calls)
    content.push({ type: 'tool_use', id, caller: CALLER, name: names.long(name), input: argumentsOf(argumentText) });
  // Clients that ask for no thinking may take the first block for the answer, and the last for a call.
  if (thinkingForm === 'off' && isKept && !calls.some(({ id }) => seals.holds(members, id))) content.push(redacted());
  return content;
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Members of a usage that a chat reply does not tell. Strict clients of this API require them. */
const UNKNOWN_USAGE = {
  cache_creation: null,
  inference_geo: null,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
};

/**
 * The usage of a chat reply as Anthropic counts it. Tokens that were read from a cache, or written to one, do not
 * count as `input_tokens`. The sum of these three is billed. The cost is included.
 */
function anthropicUsage({ usage }: ChatEnd): JsonObject {
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    prompt_tokens_details: _details,
    total_tokens: _total,
    completion_tokens_details: _of,
    cache_read_input_tokens: _read,
    cache_creation_input_tokens: _written,
    prompt_cache_hit_tokens: _hit,
    prompt_cache_miss_tokens: _miss,
    ...more
  } = usage ?? {};
  const { cached, cacheWritten, reasoning } = tokenDetails(usage ?? {}, count(prompt), count(completion));
  return {
    input_tokens: count(prompt) - cached - cacheWritten,
    cache_creation_input_tokens: cacheWritten,
    cache_read_input_tokens: cached,
    output_tokens: count(completion),
    ...UNKNOWN_USAGE,
    ...(reasoning > 0 ? { output_tokens_details: { thinking_tokens: reasoning } } : {}),
    ...more,
  };
}

interface Stop {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
}

const REASONS: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
  error: 'max_tokens',
};

/** The tool calls of a message: how many, and whether one was cut, whatever reason its provider gives for the end. */
type Calls = Pick<Blocks, 'count' | 'isCut'>;

/** `sequences`: the stop sequences of the request. */
function stopOf(end: ChatEnd, sequences: readonly string[], { count, isCut }: Calls): Stop {
  const { finish, stopSequence, fault } = end;
  // A charged reply becomes an incomplete message instead of an error, so that no client retries it automatically.
  if (fault !== null) return { stop_reason: 'max_tokens', stop_sequence: null };
  if (finish === 'stop' && stopSequence !== null && sequences.includes(stopSequence))
    return { stop_reason: 'stop_sequence', stop_sequence: stopSequence };
  const reason = REASONS[finish ?? 'stop'];
  if (reason !== 'end_turn' && reason !== 'tool_use') return { stop_reason: reason, stop_sequence: null };
  return { stop_reason: isCut ? 'max_tokens' : count > 0 ? 'tool_use' : 'end_turn', stop_sequence: null };
}
