import { MODELS, STREAM_HEAD } from './replies.ts';

/** Number of deltas in each stream. */
export const WIRE_EVENTS = 100;

const USAGE = { input_tokens: 24, output_tokens: WIRE_EVENTS };
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const word = (index: number) => ` word${index % 10}`;

/** The events in one write. Each event is its own HTTP chunk, as in real servers. */
const streamOf = (events: readonly string[]): Buffer =>
  Buffer.concat([STREAM_HEAD, Buffer.from(`${events.map(chunk).join('')}0\r\n\r\n`)]);

const named = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;

function messages(): Buffer {
  const message = { id: 'msg_bench', type: 'message', role: 'assistant', model: MODELS.wire, content: [] };
  const start = { ...message, stop_reason: null, stop_sequence: null, usage: { ...USAGE, output_tokens: 1 } };
  const deltas = Array.from({ length: WIRE_EVENTS }, (_one, index) =>
    named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word(index) } }),
  );
  return streamOf([
    named('message_start', { message: start }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...deltas,
    named('content_block_stop', { index: 0 }),
    named('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: USAGE }),
    named('message_stop', {}),
  ]);
}

function responses(): Buffer {
  let sequence = 0;
  const next = (type: string, members: object) => named(type, { ...members, sequence_number: sequence++ });
  const response = { id: 'resp_bench', object: 'response', created_at: 1, model: MODELS.wire, error: null };
  const text = Array.from({ length: WIRE_EVENTS }, (_one, index) => word(index)).join('');
  const content = [{ type: 'output_text', text, annotations: [] }];
  const item = { type: 'message', id: 'msg_bench', role: 'assistant', status: 'completed', content };
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  return streamOf([
    next('response.created', { response: begun }),
    next('response.in_progress', { response: begun }),
    next('response.output_item.added', { output_index: 0, item: { ...item, content: [] } }),
    ...Array.from({ length: WIRE_EVENTS }, (_one, index) =>
      next('response.output_text.delta', {
        item_id: item.id,
        output_index: 0,
        content_index: 0,
        delta: word(index),
        logprobs: [],
        obfuscation: 'abcdefghijklmnop'.slice(index % 16),
      }),
    ),
    next('response.output_item.done', { output_index: 0, item }),
    next('response.completed', {
      response: { ...response, status: 'completed', output: [item], usage: { ...USAGE, total_tokens: 124 } },
    }),
  ]);
}

function chat(): Buffer {
  const common = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: MODELS.wire };
  const event = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ ...common, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const usage = { prompt_tokens: 24, completion_tokens: WIRE_EVENTS, total_tokens: 124 };
  return streamOf([
    event({ role: 'assistant', content: '' }),
    ...Array.from({ length: WIRE_EVENTS }, (_one, index) => event({ content: word(index) })),
    event({}, 'stop'),
    `data: ${JSON.stringify({ ...common, choices: [], usage })}\n\n`,
    'data: [DONE]\n\n',
  ]);
}

const STREAMS = { chat: chat(), messages: messages(), responses: responses() };

/** The stream in the wire format of the request's path. */
export const wireReply = (request: string): Buffer =>
  request.startsWith('POST /v1/messages')
    ? STREAMS.messages
    : request.startsWith('POST /v1/responses')
      ? STREAMS.responses
      : STREAMS.chat;
