/** How a provider writes one reply on a wire of its own: what has begun, and what follows. */
interface NativeReply {
  /** Of a stream; of a reply in one piece its first bytes, with the text in them. */
  readonly begun: string;
  /** With these completion tokens; null for a reply without usage. */
  end(used: number | null): string;
  /** The end of a reply in one piece that is padded. */
  padded(padding: string): string;
}

const event = (type: string, members: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;

/** A reply of Anthropic's Messages API that says a text. */
export function messagesReply(said: string, stream: boolean): NativeReply {
  const message = { id: 'msg_up', type: 'message', role: 'assistant', model: 'peer' };
  if (!stream) {
    const begun = JSON.stringify({ ...message, content: [{ type: 'text', text: said }] }).slice(0, -1);
    return {
      begun,
      end: (used) =>
        `,"stop_reason":"end_turn","stop_sequence":null${used === null ? '' : `,"usage":{"input_tokens":0,"output_tokens":${used}}`}}`,
      padded: (padding) => `,"padding":"${padding}"}`,
    };
  }
  const start = event('message_start', { message: { ...message, content: [], stop_reason: null } });
  const block = event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  const delta = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: said } });
  return {
    begun: start + block + delta,
    end: (used) =>
      event('content_block_stop', { index: 0 }) +
      event('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        ...(used === null ? {} : { usage: { input_tokens: 0, output_tokens: used } }),
      }) +
      event('message_stop', {}),
    padded: (padding) => `: ${padding}\n\n`,
  };
}

/** A reply of Google's Gemini API that says a text. */
export function geminiReply(said: string, stream: boolean): NativeReply {
  const answer = (text: string, more: object = {}) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
    modelVersion: 'peer',
    responseId: 'up',
  });
  const usageOf = (used: number | null) =>
    used === null ? {} : { usageMetadata: { promptTokenCount: 0, candidatesTokenCount: used, totalTokenCount: used } };
  if (!stream) {
    const begun = JSON.stringify(answer(said, { finishReason: 'STOP' })).slice(0, -1);
    return {
      begun,
      end: (used) => `,${JSON.stringify({ createTime: 'now', ...usageOf(used) }).slice(1)}`,
      padded: (padding) => `,"padding":"${padding}"}`,
    };
  }
  const data = (one: object) => `data: ${JSON.stringify(one)}\r\n\r\n`;
  return {
    begun: data(answer(said)),
    end: (used) => data({ ...answer('', { finishReason: 'STOP' }), ...usageOf(used) }),
    padded: (padding) => `: ${padding}\n\n`,
  };
}

/** A reply of OpenAI's Responses API that says a text. */
export function responsesReply(said: string, stream: boolean): NativeReply {
  const response = { id: 'resp_up', object: 'response', created_at: 1, model: 'peer' };
  const message = {
    type: 'message',
    id: 'msg_up',
    role: 'assistant',
    content: [{ type: 'output_text', text: said, annotations: [] }],
  };
  const usageOf = (used: number | null) =>
    used === null ? {} : { usage: { input_tokens: 0, output_tokens: used, total_tokens: used } };
  if (!stream) {
    const begun = JSON.stringify({ ...response, output: [message] }).slice(0, -1);
    return {
      begun,
      end: (used) => `,${JSON.stringify({ status: 'completed', error: null, ...usageOf(used) }).slice(1)}`,
      padded: (padding) => `,"padding":"${padding}"}`,
    };
  }
  let sequence = 0;
  const next = (type: string, members: object) => event(type, { sequence_number: sequence++, ...members });
  const begun =
    next('response.created', { response: { ...response, status: 'in_progress', output: [] } }) +
    next('response.output_item.added', { output_index: 0, item: { ...message, content: [] } }) +
    next('response.output_text.delta', { item_id: 'msg_up', output_index: 0, content_index: 0, delta: said });
  return {
    begun,
    end: (used) =>
      next('response.output_item.done', { output_index: 0, item: message }) +
      next('response.completed', {
        response: { ...response, status: 'completed', output: [message], ...usageOf(used) },
      }),
    padded: (padding) => `: ${padding}\n\n`,
  };
}
