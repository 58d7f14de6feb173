import { crc32 } from 'node:zlib';
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

/* The APIs of vendors that have one of their own. */

/** Anthropic's Messages API. Its input tokens are without those of the cache. */
export function anthropicVendor({ body, kind }: VendorRequest): VendorReply {
  const input = {
    input_tokens: TOKENS.prompt - TOKENS.cached - TOKENS.written,
    cache_read_input_tokens: TOKENS.cached,
    cache_creation_input_tokens: TOKENS.written,
  };
  const call = { type: 'tool_use', id: CALL.id, name: CALL.name, input: CALL.input };
  const content =
    kind === 'tools'
      ? [call]
      : [
          ...(kind === 'reasoning' ? [{ type: 'thinking', thinking: THOUGHT, signature: SIGNATURE }] : []),
          { type: 'text', text: TEXT.join('') },
        ];
  const stop = { stop_reason: kind === 'tools' ? 'tool_use' : 'end_turn', stop_sequence: null };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'vendor-model' };
  if (body['stream'] !== true)
    return { json: { ...message, content, ...stop, usage: { ...input, output_tokens: TOKENS.completion } } };
  const events: object[] = [
    {
      type: 'message_start',
      message: {
        ...message,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...input, output_tokens: 1 },
      },
    },
  ];
  content.forEach((block, index) => {
    const delta = (given: object) => events.push({ type: 'content_block_delta', index, delta: given });
    const opened = { tool_use: { input: {} }, thinking: { thinking: '', signature: '' }, text: { text: '' } };
    events.push({
      type: 'content_block_start',
      index,
      content_block: { ...block, ...opened[block.type as keyof typeof opened] },
    });
    if (block.type === 'text') for (const text of TEXT) delta({ type: 'text_delta', text });
    else if (block.type === 'tool_use') delta({ type: 'input_json_delta', partial_json: JSON.stringify(CALL.input) });
    else {
      delta({ type: 'thinking_delta', thinking: THOUGHT });
      delta({ type: 'signature_delta', signature: SIGNATURE });
    }
    events.push({ type: 'content_block_stop', index });
  });
  events.push({ type: 'message_delta', delta: stop, usage: { ...input, output_tokens: TOKENS.completion } });
  events.push({ type: 'message_stop' });
  return { events, named: true };
}

/** Gemini's API, of Google's AI Studio and of Vertex. Thoughts are counted beside the candidates. */
export function geminiVendor({ path, kind }: VendorRequest): VendorReply {
  if (path.includes(':batchEmbedContents')) return { json: { embeddings: [{ values: VECTOR }, { values: VECTOR }] } };
  if (path.includes(':predict')) return { json: { predictions: vertexEmbeddings() } };
  const usageMetadata = {
    promptTokenCount: TOKENS.prompt,
    cachedContentTokenCount: TOKENS.cached,
    candidatesTokenCount: TOKENS.completion - TOKENS.reasoning,
    thoughtsTokenCount: TOKENS.reasoning,
    totalTokenCount: TOKENS.prompt + TOKENS.completion,
  };
  const parts: object[] =
    kind === 'tools'
      ? [{ functionCall: { name: CALL.name, args: CALL.input }, thoughtSignature: SIGNATURE }]
      : kind === 'paint'
        ? [{ inlineData: { mimeType: 'image/png', data: PICTURE.toString('base64') } }]
        : [
            ...(kind === 'reasoning' ? [{ text: THOUGHT, thought: true, thoughtSignature: SIGNATURE }] : []),
            ...TEXT.map((text) => ({ text })),
          ];
  const reply = (some: readonly object[], finish: object, more: object) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: some }, ...finish }],
    ...more,
  });
  const end = { finishReason: 'STOP' };
  if (!path.includes(':streamGenerateContent')) return { json: reply(parts, end, { usageMetadata }) };
  return {
    events: [...parts.map((part) => reply([part], {}, {})), reply([{ text: '' }], end, { usageMetadata })],
  };
}

/** Tokens are said of each input. */
const vertexEmbeddings = () =>
  [3, EMBEDDED - 3].map((token_count) => ({ embeddings: { values: VECTOR, statistics: { token_count } } }));

/** Cohere's API, version 2. */
export function cohereVendor({ path, body, kind }: VendorRequest): VendorReply {
  if (path.endsWith('/rerank'))
    return {
      json: {
        id: 'r',
        results: [
          { index: 1, relevance_score: 0.9 },
          { index: 0, relevance_score: 0.1 },
        ],
        meta: { billed_units: { search_units: 2 } },
      },
    };
  if (path.endsWith('/embed'))
    return {
      json: { embeddings: { float: [VECTOR, VECTOR] }, meta: { billed_units: { input_tokens: EMBEDDED } } },
    };
  const tokens = { input_tokens: TOKENS.prompt, output_tokens: TOKENS.completion };
  const usage = { billed_units: tokens, tokens };
  const finish_reason = kind === 'tools' ? 'TOOL_CALL' : 'COMPLETE';
  const call = { id: CALL.id, type: 'function', function: { name: CALL.name, arguments: JSON.stringify(CALL.input) } };
  const content = [
    ...(kind === 'reasoning' ? [{ type: 'thinking', thinking: THOUGHT }] : []),
    { type: 'text', text: TEXT.join('') },
  ];
  if (body['stream'] !== true)
    return {
      json: {
        generation_id: 'g',
        finish_reason,
        message: { role: 'assistant', ...(kind === 'tools' ? { tool_calls: [call] } : { content }) },
        usage,
      },
    };
  const of = (message: object) => ({ delta: { message } });
  const events: object[] = [{ type: 'message-start', id: 'g', ...of({ role: 'assistant' }) }];
  if (kind === 'tools')
    events.push(
      {
        type: 'tool-call-start',
        index: 0,
        ...of({ tool_calls: { ...call, function: { name: CALL.name, arguments: '' } } }),
      },
      {
        type: 'tool-call-delta',
        index: 0,
        ...of({ tool_calls: { function: { arguments: call.function.arguments } } }),
      },
      { type: 'tool-call-end', index: 0 },
    );
  else
    content.forEach((block, index) => {
      const isText = block.type === 'text';
      const empty = isText ? { type: 'text', text: '' } : { type: 'thinking', thinking: '' };
      events.push({ type: 'content-start', index, ...of({ content: empty }) });
      for (const piece of isText ? TEXT : [THOUGHT])
        events.push({
          type: 'content-delta',
          index,
          ...of({ content: isText ? { text: piece } : { thinking: piece } }),
        });
      events.push({ type: 'content-end', index });
    });
  events.push({ type: 'message-end', delta: { finish_reason, usage } });
  return { events };
}

/** Amazon Bedrock: the Converse API, and models that are invoked in their own form. */
export function bedrockVendor({ path, kind }: VendorRequest): VendorReply {
  if (path.endsWith('/rerank'))
    return {
      json: {
        results: [
          { index: 1, relevanceScore: 0.9 },
          { index: 0, relevanceScore: 0.1 },
        ],
      },
    };
  if (path.endsWith('/invoke'))
    return {
      json:
        kind === 'paint'
          ? { images: [PICTURE.toString('base64')] }
          : { embedding: VECTOR, inputTextTokenCount: EMBEDDED },
    };
  const usage = {
    inputTokens: TOKENS.prompt - TOKENS.cached - TOKENS.written,
    outputTokens: TOKENS.completion,
    totalTokens: TOKENS.prompt + TOKENS.completion,
    cacheReadInputTokens: TOKENS.cached,
    cacheWriteInputTokens: TOKENS.written,
  };
  const toolUse = { toolUseId: CALL.id, name: CALL.name };
  const stopReason = kind === 'tools' ? 'tool_use' : 'end_turn';
  const metrics = { latencyMs: 5 };
  if (path.endsWith('/converse')) {
    const thought = { reasoningContent: { reasoningText: { text: THOUGHT, signature: SIGNATURE } } };
    const content =
      kind === 'tools'
        ? [{ toolUse: { ...toolUse, input: CALL.input } }]
        : [...(kind === 'reasoning' ? [thought] : []), { text: TEXT.join('') }];
    return { json: { output: { message: { role: 'assistant', content } }, stopReason, usage, metrics } };
  }
  const events: [string, object][] = [['messageStart', { role: 'assistant' }]];
  let index = 0;
  const block = (deltas: readonly object[], start?: object) => {
    if (start) events.push(['contentBlockStart', { contentBlockIndex: index, start }]);
    for (const delta of deltas) events.push(['contentBlockDelta', { contentBlockIndex: index, delta }]);
    events.push(['contentBlockStop', { contentBlockIndex: index++ }]);
  };
  if (kind === 'tools') block([{ toolUse: { input: JSON.stringify(CALL.input) } }], { toolUse });
  else {
    if (kind === 'reasoning')
      block([{ reasoningContent: { text: THOUGHT } }, { reasoningContent: { signature: SIGNATURE } }]);
    block(TEXT.map((text) => ({ text })));
  }
  events.push(['messageStop', { stopReason }], ['metadata', { usage, metrics }]);
  return {
    bytes: Buffer.concat(events.map(([name, payload]) => eventMessage(name, payload))),
    type: 'application/vnd.amazon.eventstream',
  };
}

/** A message of the event stream encoding: lengths, headers, payload, and a checksum of each part. */
function eventMessage(name: string, payload: object): Buffer {
  const headers = Buffer.concat(
    Object.entries({ ':message-type': 'event', ':event-type': name, ':content-type': 'application/json' }).map(
      ([key, value]) => {
        const length = Buffer.alloc(2);
        length.writeUInt16BE(Buffer.byteLength(value));
        return Buffer.concat([
          Buffer.from([key.length]),
          Buffer.from(key),
          Buffer.from([7]),
          length,
          Buffer.from(value),
        ]);
      },
    ),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + headers.length + body.length, 0);
  prelude.writeUInt32BE(headers.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, headers, body]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, checksum]);
}
