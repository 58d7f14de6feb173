import { event } from './wire-upstream.ts';

/** As Anthropic's API counts: 20 tokens of the prompt came from a cache, 8 went into one. */
export const MESSAGE_USAGE = {
  input_tokens: 12,
  cache_creation_input_tokens: 8,
  cache_read_input_tokens: 20,
  output_tokens: 9,
};
export const SIGNATURE = 'EqQBCkgIBRABGAIiQDYyN2ZhYzE5';

const MESSAGE = { id: 'msg_up', type: 'message', role: 'assistant', model: 'upstream-model-2026' };

/** A message that thinks, speaks and calls a tool. */
export const message = (more: object = {}): string =>
  JSON.stringify({
    ...MESSAGE,
    content: [
      { type: 'thinking', thinking: 'A city.', signature: SIGNATURE },
      { type: 'text', text: 'Let me see: "é🌍"' },
      { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: MESSAGE_USAGE,
    container: null,
    ...more,
  });

/** The same in a stream, in pieces. */
export function messageEvents(): readonly string[] {
  const block = (index: number, content_block: object) => event('content_block_start', { index, content_block });
  const delta = (index: number, of: object) => event('content_block_delta', { index, delta: of });
  const stop = (index: number) => event('content_block_stop', { index });
  return [
    event('message_start', {
      message: {
        ...MESSAGE,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...MESSAGE_USAGE, output_tokens: 1 },
      },
    }),
    block(0, { type: 'thinking', thinking: '', signature: '' }),
    event('ping', {}),
    delta(0, { type: 'thinking_delta', thinking: 'A ' }),
    delta(0, { type: 'thinking_delta', thinking: 'city.' }),
    delta(0, { type: 'signature_delta', signature: SIGNATURE }),
    stop(0),
    block(1, { type: 'text', text: '' }),
    ...['Let', ' me', ' see: ', '"é', '🌍"', '\\"\n', '\u0001'].map((text) => delta(1, { type: 'text_delta', text })),
    stop(1),
    block(2, { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }),
    ...['', '{"ci', 'ty":"Os', 'lo"}'].map((json) => delta(2, { type: 'input_json_delta', partial_json: json })),
    stop(2),
    event('message_delta', {
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 9, server_tool_use: { web_search_requests: 0 } },
    }),
    event('message_stop', {}),
  ];
}

/** As Google's API counts: 20 tokens of the prompt came from a cache, and thoughts count apart from the answer. */
export const GEMINI_USAGE = {
  promptTokenCount: 40,
  cachedContentTokenCount: 20,
  candidatesTokenCount: 7,
  thoughtsTokenCount: 2,
  totalTokenCount: 49,
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: 40 }],
};

const GEMINI_PARTS = [
  { text: 'A city.', thought: true },
  { text: 'Let me see: "é🌍"' },
  { functionCall: { name: 'weather', args: { city: 'Oslo' }, id: 'fc_1' }, thoughtSignature: SIGNATURE },
];
const ofGemini = (parts: readonly object[], more: object = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...more }],
  modelVersion: 'upstream-model-2026',
  responseId: 'up_1',
});

/** An answer that thinks, speaks and calls a function. */
export const geminiAnswer = (more: object = {}): string =>
  JSON.stringify(
    { ...ofGemini(GEMINI_PARTS, { finishReason: 'STOP' }), usageMetadata: GEMINI_USAGE, ...more },
    null,
    2,
  );

/** The same in a stream, in pieces, as Google's servers write it. */
export function geminiEvents(): readonly string[] {
  const data = (one: object) => `data: ${JSON.stringify(one)}\r\n\r\n`;
  const counted = (candidatesTokenCount: number) => ({
    usageMetadata: { promptTokenCount: 40, candidatesTokenCount, totalTokenCount: 40 + candidatesTokenCount },
  });
  return [
    data({ ...ofGemini([{ text: 'A ', thought: true }]), ...counted(0) }),
    data({ ...ofGemini([{ text: 'city.', thought: true }]), ...counted(0) }),
    ...['Let', ' me', ' see: ', '"é', '🌍"'].map((text, index) => data({ ...ofGemini([{ text }]), ...counted(index) })),
    data({ ...ofGemini([GEMINI_PARTS[2]!], { finishReason: 'STOP' }), usageMetadata: GEMINI_USAGE }),
  ];
}

export const RESPONSE_USAGE = {
  input_tokens: 40,
  input_tokens_details: { cached_tokens: 20 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 49,
};

const RESPONSE = { id: 'resp_up', object: 'response', created_at: 1, model: 'upstream-model-2026', error: null };
const OUTPUT = [
  { type: 'reasoning', id: 'rs_up', summary: [], encrypted_content: 'gAAAAB-theirs' },
  {
    type: 'message',
    id: 'msg_up',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Let me "see"', annotations: [] }],
  },
  { type: 'function_call', id: 'fc_up', call_id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
];

export const response = (more: object = {}): string =>
  JSON.stringify({ ...RESPONSE, status: 'completed', output: OUTPUT, usage: RESPONSE_USAGE, ...more });

/** The same in a stream, in pieces, with padding as OpenAI writes it. */
export function responseEvents(): readonly string[] {
  let sequence = 0;
  const next = (type: string, members: object) => event(type, { ...members, sequence_number: sequence++ });
  const begun = { ...RESPONSE, status: 'in_progress', output: [], usage: null };
  const text = (delta: string, obfuscation: string) =>
    next('response.output_text.delta', {
      item_id: 'msg_up',
      output_index: 1,
      content_index: 0,
      delta,
      logprobs: [],
      obfuscation,
    });
  const part = { type: 'output_text', text: '', annotations: [] };
  const at = { item_id: 'msg_up', output_index: 1, content_index: 0 };
  const args = (delta: string) =>
    next('response.function_call_arguments.delta', { item_id: 'fc_up', output_index: 2, delta });
  return [
    next('response.created', { response: begun }),
    next('response.in_progress', { response: begun }),
    next('response.output_item.added', { output_index: 0, item: { ...OUTPUT[0], encrypted_content: '' } }),
    next('response.output_item.done', { output_index: 0, item: OUTPUT[0] }),
    next('response.output_item.added', { output_index: 1, item: { ...OUTPUT[1], content: [] } }),
    next('response.content_part.added', { ...at, part }),
    text('Let', 'a'),
    text(' me "', 'bcd'),
    text('see"', ''),
    next('response.output_text.done', { ...at, text: 'Let me "see"', logprobs: [] }),
    next('response.content_part.done', { ...at, part: { ...part, text: 'Let me "see"' } }),
    next('response.output_item.done', { output_index: 1, item: OUTPUT[1] }),
    next('response.output_item.added', { output_index: 2, item: { ...OUTPUT[2], arguments: '' } }),
    args('{"city":'),
    args('"Oslo"}'),
    next('response.function_call_arguments.done', {
      item_id: 'fc_up',
      output_index: 2,
      arguments: '{"city":"Oslo"}',
      name: 'weather',
    }),
    next('response.output_item.done', { output_index: 2, item: OUTPUT[2] }),
    next('response.completed', {
      response: { ...RESPONSE, status: 'completed', output: OUTPUT, usage: RESPONSE_USAGE },
    }),
  ];
}
