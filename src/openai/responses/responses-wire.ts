import { isObject } from '#wire';
import { RESPONSES_PATH } from '#config';
import type { Offer } from '#gateway';
import type { NativeWire } from '../native/native-wire.ts';
import { holds } from '../native/native-size.ts';
import { plainId, isSealedHere } from '../chat/echo-fields.ts';
import { isPlainFile } from '../chat/prompt-size.ts';
import { isContainerRun, withoutContainers } from './container-runs.ts';
import { createResponsesSpeech } from './native-responses.ts';

type Json = Readonly<Record<string, unknown>>;

/** Thinking that this gateway did not seal. */
const LOST = /"encrypted_content":\s*"(?!tg[12]\.|")/;
/** Tools that the client runs. */
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
  'context_management',
]);

/** OpenAI's Responses API, as providers speak it. */
export const RESPONSES_WIRE: NativeWire = {
  name: 'responses',
  path: RESPONSES_PATH,
  cap: 'max_output_tokens',
  prompt: 'input',
  fields: FIELDS,
  headers: () => ({ sent: {}, dropped: [] }),
  isRetold: isContainerRun,
  changed({ input, metadata, store, background }) {
    const told = Array.isArray(input) ? withPlainIds(withoutUnknown(withoutContainers(input))) : input;
    const sent = {
      // `metadata` is for the gateway's own logs.
      ...(metadata === undefined ? {} : { metadata: null }),
      // The gateway makes responses in the background, not the provider.
      ...(background === undefined ? {} : { background: null }),
      // All consumers share the account at a provider, so it must store nothing. Without the field it would store.
      ...(store === false ? {} : { store: 'false' }),
      ...(told === input ? {} : { input: JSON.stringify(told) }),
    };
    return { sent, dropped: Array.isArray(input) && input.some(isContainerRun) ? ['container_id'] : [] };
  },
  hidesPrompt: ({ tools, input }) => hasHostedTool({ tools }) || holds(input, hasFile) || holds(input, hasHostedTool),
  loses: (text) => LOST.test(text),
  speech: (model) => createResponsesSpeech(model),
};

/** Offers whose models do not give their thinking in encrypted form, and refuse to be asked for it. */
const WITHOUT_THINKING = new WeakSet<Offer>();
const THINKING = 'reasoning.encrypted_content';
const REFUSES_THINKING = /encrypted.?content|"include"/i;

/**
 * The same for a request whose response is told as this gateway's own. `told`: the members that its response has
 * instead. If the response is kept, the provider is asked for the thinking, because only the provider can read it, and
 * later requests that name it need it.
 */
export function ownResponsesWire(told: (callId: string) => Json, isKept: boolean): NativeWire {
  let asksThinking = isKept;
  return {
    ...RESPONSES_WIRE,
    changed(asked, text, lists, offer) {
      const { sent, dropped } = RESPONSES_WIRE.changed(asked, text, lists, offer);
      const include = Array.isArray(asked['include']) ? (asked['include'] as unknown[]) : [];
      asksThinking &&= !include.includes(THINKING);
      if (!asksThinking || WITHOUT_THINKING.has(offer)) return { sent, dropped };
      return { sent: { ...sent, include: JSON.stringify([...include, THINKING]) }, dropped };
    },
    reform(offer, status, answer) {
      if (!asksThinking || status !== 400 || !REFUSES_THINKING.test(Buffer.from(answer).toString())) return false;
      asksThinking = false;
      WITHOUT_THINKING.add(offer);
      return true;
    },
    speech: (model, callId) => createResponsesSpeech(model, told(callId)),
  };
}

const hasFile = (part: Json): boolean => part['type'] === 'input_file' && !isPlainFile(part);

/** Whether a request or an item has a tool that runs at the provider. */
const hasHostedTool = ({ tools }: Json): boolean =>
  Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool));

/** Whether a tool runs at the provider. A shell runs at the client, unless it is in a container. */
const runsThere = ({ type, environment, tools }: Json): boolean =>
  !OF_THE_CLIENT.has(type) ||
  (isObject(environment) && environment['type'] !== 'local') ||
  (type === 'namespace' && hasHostedTool({ tools }));

/**
 * Whether an item is thinking that a provider cannot use. A provider refuses thinking that this gateway sealed.
 * Thinking that is only named was never stored, so the provider does not find it.
 */
const isUnknownThinking = (item: unknown): boolean => {
  if (!isObject(item) || item['type'] !== 'reasoning') return false;
  const { encrypted_content: sealed, content } = item;
  if (typeof sealed === 'string' && sealed !== '') return isSealedHere(sealed);
  return !(Array.isArray(content) && content.length > 0);
};

const withoutUnknown = (input: readonly unknown[]): readonly unknown[] =>
  input.some(isUnknownThinking) ? input.filter((item) => !isUnknownThinking(item)) : input;

/** Sealed ids of calls become short. Returns the same array without such an id. */
function withPlainIds(input: readonly unknown[]): readonly unknown[] {
  const plain = input.map((item) => {
    const id = isObject(item) ? item['call_id'] : null;
    return typeof id === 'string' && plainId(id) !== id ? { ...(item as Json), call_id: plainId(id) } : item;
  });
  return plain.some((item, at) => item !== input[at]) ? plain : input;
}
