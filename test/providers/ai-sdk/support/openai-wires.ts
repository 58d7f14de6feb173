import {
  CALL,
  EMBEDDED,
  SIGNATURE,
  TEXT,
  THOUGHT,
  TOKENS,
  VECTOR,
  type VendorReply,
  type VendorRequest,
} from './scene.ts';
import { PICTURE } from './picture.ts';

/* OpenAI's APIs, and what other vendors made of them. */

const USAGE = {
  prompt_tokens: TOKENS.prompt,
  completion_tokens: TOKENS.completion,
  total_tokens: TOKENS.prompt + TOKENS.completion,
  prompt_tokens_details: { cached_tokens: TOKENS.cached },
  completion_tokens_details: { reasoning_tokens: TOKENS.reasoning },
};

/** The differences among vendors of chat completions. */
interface ChatVendor {
  /** The member of a message that has its thinking. `parts`: the content is a list with it, as Mistral has it. */
  readonly thinking: 'reasoning' | 'reasoning_content' | 'parts';
  readonly usage?: object;
  /** Groq's usage of a stream. */
  readonly streamUsage?: (usage: object) => object;
}

const TOOL_CALL = {
  id: CALL.id,
  type: 'function',
  function: { name: CALL.name, arguments: JSON.stringify(CALL.input) },
};
const SHARED = { id: 'chatcmpl-1', created: 1_760_000_000, model: 'vendor-model' };

/** `POST …/chat/completions`, `…/embeddings` and `…/images/generations`. */
export const chatVendor =
  ({ thinking, usage = USAGE, streamUsage = (given) => ({ usage: given }) }: ChatVendor) =>
  ({ path, body, kind }: VendorRequest): VendorReply => {
    if (path.includes('/embeddings')) return { json: embeddings() };
    if (path.includes('/images/')) return { json: { created: 1, data: [{ b64_json: PICTURE.toString('base64') }] } };
    const reason = kind === 'tools' ? 'tool_calls' : 'stop';
    const think = (text: string) =>
      thinking === 'parts'
        ? { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }
        : { [thinking]: text };
    if (body['stream'] !== true) {
      const said = TEXT.join('');
      const message =
        kind === 'tools'
          ? { content: thinking === 'parts' ? '' : null, tool_calls: [{ ...TOOL_CALL, index: 0 }] }
          : kind !== 'reasoning'
            ? { content: said }
            : thinking === 'parts'
              ? { content: [...(think(THOUGHT)['content'] as object[]), { type: 'text', text: said }] }
              : { content: said, ...think(THOUGHT) };
      const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason }];
      return { json: { ...SHARED, object: 'chat.completion', choices, usage } };
    }
    const deltas: object[] =
      kind === 'tools'
        ? [{ tool_calls: [{ index: 0, ...TOOL_CALL }] }]
        : [...(kind === 'reasoning' ? [think(THOUGHT)] : []), ...TEXT.map((content) => ({ content }))];
    const chunk = (delta: object, finish_reason: string | null, more: object = {}) => ({
      ...SHARED,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason }],
      ...more,
    });
    return {
      events: [
        ...deltas.map((delta) => chunk(delta, null)),
        chunk({ content: '' }, reason, streamUsage(usage)),
        '[DONE]',
      ],
    };
  };

function embeddings() {
  const data = [0, 1].map((index) => ({ object: 'embedding', index, embedding: VECTOR }));
  return { object: 'list', id: 'e', model: 'm', data, usage: { prompt_tokens: EMBEDDED, total_tokens: EMBEDDED } };
}

/** `POST …/responses`, as OpenAI, Azure and xAI have it, and their other APIs. */
export function responsesVendor(request: VendorRequest): VendorReply {
  const { path, body, kind } = request;
  if (!path.includes('/responses')) return chatVendor({ thinking: 'reasoning' })(request);
  const items = itemsOf(kind);
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: SHARED.created,
    model: 'vendor-model',
    status: 'completed',
    incomplete_details: null,
    error: null,
    output: items,
    usage: {
      input_tokens: TOKENS.prompt,
      input_tokens_details: { cached_tokens: TOKENS.cached },
      output_tokens: TOKENS.completion,
      output_tokens_details: { reasoning_tokens: TOKENS.reasoning },
      total_tokens: TOKENS.prompt + TOKENS.completion,
    },
  };
  if (body['stream'] !== true) return { json: response };
  const { usage: _, ...begun } = response;
  const events: object[] = [{ type: 'response.created', response: { ...begun, status: 'in_progress', output: [] } }];
  items.forEach((item, index) => {
    const of = { item_id: item.id, output_index: index };
    events.push({ type: 'response.output_item.added', output_index: index, item: openedItem(item) });
    if (item.type === 'reasoning') {
      const part = { ...of, summary_index: 0 };
      events.push({ type: 'response.reasoning_summary_part.added', ...part, part: { type: 'summary_text', text: '' } });
      events.push({ type: 'response.reasoning_summary_text.delta', ...part, delta: THOUGHT });
      events.push({
        type: 'response.reasoning_summary_part.done',
        ...part,
        part: { type: 'summary_text', text: THOUGHT },
      });
    } else if (item.type === 'message')
      for (const delta of TEXT) events.push({ type: 'response.output_text.delta', ...of, content_index: 0, delta });
    else {
      const given = JSON.stringify(CALL.input);
      events.push({ type: 'response.function_call_arguments.delta', ...of, delta: given });
      events.push({ type: 'response.function_call_arguments.done', ...of, arguments: given });
    }
    events.push({ type: 'response.output_item.done', output_index: index, item });
  });
  events.push({ type: 'response.completed', response });
  return { events: events.map((event, at) => ({ ...event, sequence_number: at })), named: true };
}

type Item = { readonly id: string; readonly type: string };

function itemsOf(kind: VendorRequest['kind']): readonly Item[] {
  if (kind === 'tools') {
    const call = { call_id: CALL.id, name: CALL.name, arguments: JSON.stringify(CALL.input) };
    return [{ type: 'function_call', id: 'fc_1', ...call, status: 'completed' } as Item];
  }
  const content = [{ type: 'output_text', text: TEXT.join(''), annotations: [], logprobs: [] }];
  const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content } as Item;
  if (kind !== 'reasoning') return [message];
  const summary = [{ type: 'summary_text', text: THOUGHT }];
  return [
    { type: 'reasoning', id: 'rs_1', status: 'completed', summary, encrypted_content: SIGNATURE } as Item,
    message,
  ];
}

const openedItem = (item: Item): object => ({
  ...item,
  status: 'in_progress',
  ...(item.type === 'message' ? { content: [] } : {}),
  ...(item.type === 'function_call' ? { arguments: '' } : {}),
  ...(item.type === 'reasoning' ? { summary: [] } : {}),
});
