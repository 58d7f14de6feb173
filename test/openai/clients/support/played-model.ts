import { chunk, call as chatCall, completion, eventsOf, usage } from '../../translated/support/transcript-upstream.ts';
import { event, startWireUpstream, type Reached, type WireAnswer } from '../../native/support/wire-upstream.ts';

type Json = Readonly<Record<string, unknown>>;

/** A tool that a client offers its model. */
export interface OfferedTool {
  readonly name: string;
  /** Of a function; absent of a tool that takes a text. */
  readonly parameters?: { readonly properties: object };
}

/** A request of a client, in the words of no wire. */
export interface Asked {
  readonly reached: Reached;
  readonly tools: readonly OfferedTool[];
  /** Results of tools, from the first one on. */
  readonly results: readonly string[];
  /** What was said, as JSON, from the first one on. */
  readonly turns: readonly string[];
  /** It asks for a compacted history, by the wire's own means. */
  readonly compacts: boolean;
}

/** An answer of the model. `call.input` is a text where the tool takes one. */
export interface Said {
  readonly thinking?: string;
  readonly text?: string;
  readonly call?: {
    readonly id: string;
    readonly name: string;
    readonly input: Json | string;
    /** Of the tool's name, at `/responses`. */
    readonly namespace?: string;
  };
  /** It refuses a prompt of so many tokens. */
  readonly tooLong?: number;
  /** Tokens that the answer reports. Default 20 and 9. 5 of the prompt came from a cache. */
  readonly used?: Used;
  /** The text begins, and nothing follows. */
  readonly held?: boolean;
  /** It fails before any content: with a status, or by a connection that breaks behind the first event. */
  readonly dies?: 'behind its head' | 500 | 503;
}

export interface Used {
  readonly prompt: number;
  readonly completion: number;
}

export interface PlayedModel {
  /** Base URL with `/v1`. */
  readonly url: string;
  readonly asked: Asked[];
  /** Answers every request from now on. */
  answer: (asked: Asked) => Said;
  /** Refuses and takes connections, as `WireUpstream` does. */
  refuse(): void;
  accept(): void;
  stop(): Promise<void>;
}

/** What each answer costs at 1 USD and 2 USD for a million tokens, in micro-USD: 20 + 2 × 9. */
export const COST = 38n;
export const CONTEXT_LENGTH = 200_000;
/** As Anthropic signs its thinking. */
export const SIGNATURE = 'EqQBCkgIBRABGAIiQDYyN2ZhYzE5';

interface Played {
  tools(body: Json): readonly OfferedTool[];
  results(body: Json): readonly string[];
  /** The member of a request that has what was said. */
  readonly history: string;
  events(said: Said & { readonly used: Used }, compacts: boolean): string;
  /** An answer in one piece. */
  whole(said: Said & { readonly used: Used }): object;
  refusal(tokens: number): object;
}

/** A model of which a test says what it answers. It speaks the wire that it is asked in. */
export async function startPlayedModel(): Promise<PlayedModel> {
  const upstream = await startWireUpstream();
  upstream.answer = (reached): WireAnswer => {
    const { pathname } = new URL(reached.path, upstream.url);
    const wire = pathname.startsWith('/v1beta/models/') ? gemini : WIRES[pathname]!;
    const turns = list(reached.body[wire.history]).map((turn) => JSON.stringify(turn));
    const compacts = pathname.endsWith('/compact') || (turns.at(-1)?.includes('"compaction_trigger"') ?? false);
    const asked = { reached, tools: wire.tools(reached.body), results: wire.results(reached.body), turns, compacts };
    played.asked.push(asked);
    const said = { used: USED, ...played.answer(asked) };
    if (said.tooLong !== undefined) return { status: 400, text: JSON.stringify(wire.refusal(said.tooLong)) };
    if (typeof said.dies === 'number') return { status: said.dies, text: '{"error":{"message":"Overloaded"}}' };
    const streams = wire === gemini ? reached.path.includes('alt=sse') : reached.body['stream'] === true;
    if (!streams) {
      const text = JSON.stringify(wire.whole(said));
      return said.dies === undefined ? { text } : { text: text.slice(0, text.length / 2), breaks: true };
    }
    const type = 'text/event-stream';
    const events = wire.events(said, compacts);
    if (said.dies !== undefined)
      return { text: wire === gemini ? ': \n\n' : events.slice(0, eventEnd(events)), type, breaks: true };
    return said.held === true
      ? { text: events.slice(0, eventEnd(events, events.indexOf(said.text!))), rest: new Promise(() => {}), type }
      : { text: events, type };
  };
  const played: PlayedModel = {
    url: upstream.url,
    asked: [],
    answer: () => {
      throw new Error('no answer was given');
    },
    refuse: () => upstream.refuse(),
    accept: () => upstream.accept(),
    stop: () => upstream.stop(),
  };
  return played;
}

const USED: Used = { prompt: 20, completion: 9 };
/** Where the event ends that has this place. */
const eventEnd = (events: string, at = 0): number => {
  const { 0: end, index } = /\r?\n\r?\n/.exec(events.slice(at))!;
  return at + index + end.length;
};

let made = 0;
/** Clients take what has the same id for one. */
const newId = (kind: string): string => `${kind}_${++made}`;

const list = (value: unknown) => (value ?? []) as readonly Json[];
/** The text of a content that is one, or that has parts. */
const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : list(content)
        .map(({ text }) => (typeof text === 'string' ? text : ''))
        .join('');
const jsonOf = (input: Json | string): string => (typeof input === 'string' ? input : JSON.stringify(input));

const chatUsage = ({ prompt, completion: of }: Used) => ({
  prompt_tokens: prompt,
  completion_tokens: of,
  total_tokens: prompt + of,
  prompt_tokens_details: { cached_tokens: 5 },
});
const messagesUsage = ({ prompt, completion: of }: Used) => ({
  input_tokens: prompt - 5,
  cache_read_input_tokens: 5,
  cache_creation_input_tokens: 0,
  output_tokens: of,
});
const responsesUsage = ({ prompt, completion: of }: Used) => ({
  input_tokens: prompt,
  input_tokens_details: { cached_tokens: 5 },
  output_tokens: of,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: prompt + of,
});

const chat: Played = {
  history: 'messages',
  tools: ({ tools }) => list(tools).map((one) => one['function'] as OfferedTool),
  results: ({ messages }) =>
    list(messages)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => textOf(content)),
  whole: ({ text, used }) => completion({ content: text }, 'stop', chatUsage(used)),
  events: ({ thinking, text, call, used }) =>
    eventsOf([
      chunk({ role: 'assistant', content: '' }),
      ...(thinking === undefined ? [] : [chunk({ reasoning_content: thinking })]),
      ...(text === undefined ? [] : [chunk({ content: text })]),
      ...(call === undefined
        ? []
        : [
            chatCall(0, {
              id: call.id,
              name: call.name,
              // A function stands for a tool that takes a text.
              args: JSON.stringify(typeof call.input === 'string' ? { content: call.input } : call.input),
            }),
          ]),
      chunk({}, call === undefined ? 'stop' : 'tool_calls'),
      usage(chatUsage(used)),
    ]),
  refusal: (tokens) => ({
    error: {
      message: `This model's maximum context length is ${CONTEXT_LENGTH} tokens. However, you requested ${tokens + 1000} tokens (${tokens} in the messages, 1000 in the completion).`,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
    },
  }),
};

const anthropicsMessage = () => ({ id: newId('msg'), type: 'message', role: 'assistant', model: 'm', content: [] });
const messages: Played = {
  history: 'messages',
  tools: ({ tools }) =>
    list(tools).map(({ name, input_schema: parameters }) => ({ name, parameters }) as unknown as OfferedTool),
  results: ({ messages: turns }) =>
    list(turns)
      .flatMap(({ content }) => (Array.isArray(content) ? (content as readonly Json[]) : []))
      .filter(({ type }) => type === 'tool_result')
      .map(({ content }) => textOf(content)),
  whole: ({ text, used }) => ({
    ...anthropicsMessage(),
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: messagesUsage(used),
  }),
  events({ thinking, text, call, used: of }) {
    const blocks: (readonly [start: object, delta: readonly object[]])[] = [];
    if (thinking !== undefined)
      blocks.push([
        { type: 'thinking', thinking: '', signature: '' },
        [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature: SIGNATURE },
        ],
      ]);
    if (text !== undefined) blocks.push([{ type: 'text', text: '' }, [{ type: 'text_delta', text }]]);
    if (call !== undefined)
      blocks.push([
        { type: 'tool_use', id: call.id, name: call.name, input: {} },
        [{ type: 'input_json_delta', partial_json: jsonOf(call.input) }],
      ]);
    const used = messagesUsage(of);
    const stop = { stop_reason: null, stop_sequence: null };
    return [
      event('message_start', { message: { ...anthropicsMessage(), ...stop, usage: { ...used, output_tokens: 1 } } }),
      ...blocks.flatMap(([content_block, deltas], index) => [
        event('content_block_start', { index, content_block }),
        ...deltas.map((delta) => event('content_block_delta', { index, delta })),
        event('content_block_stop', { index }),
      ]),
      event('message_delta', {
        delta: { ...stop, stop_reason: call === undefined ? 'end_turn' : 'tool_use' },
        usage: used,
      }),
      event('message_stop', {}),
    ].join('');
  },
  refusal: (tokens) => ({
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message: `prompt is too long: ${tokens} tokens > ${CONTEXT_LENGTH} maximum`,
    },
  }),
};

const compactionOf = (text: string) => ({ type: 'compaction', id: newId('cmp'), encrypted_content: text });
const responses: Played = {
  history: 'input',
  tools: ({ tools }) => list(tools) as unknown as readonly OfferedTool[],
  results: ({ input }) =>
    list(input)
      .filter(({ type }) => type === 'function_call_output' || type === 'custom_tool_call_output')
      .map(({ output }) => textOf(output)),
  whole: ({ text, used }) => ({
    id: newId('resp'),
    object: 'response.compaction',
    created_at: 1,
    output: [compactionOf(text!)],
    usage: responsesUsage(used),
  }),
  events({ thinking, text, call, used: of }, compacts) {
    const items: object[] = [];
    const messageId = newId('msg');
    if (thinking !== undefined)
      items.push({ type: 'reasoning', id: newId('rs'), summary: [], encrypted_content: 'gAAAAB-theirs' });
    if (compacts) items.push(compactionOf(text!));
    else if (text !== undefined) {
      const content = [{ type: 'output_text', text, annotations: [] }];
      items.push({ type: 'message', id: messageId, role: 'assistant', status: 'completed', content });
    }
    if (call !== undefined) {
      const { id: call_id, name, input, namespace } = call;
      items.push(
        typeof input === 'string'
          ? { type: 'custom_tool_call', id: newId('ct'), call_id, name, input, status: 'completed' }
          : {
              type: 'function_call',
              id: newId('fc'),
              call_id,
              name,
              ...(namespace === undefined ? {} : { namespace }),
              arguments: jsonOf(input),
              status: 'completed',
            },
      );
    }
    let sequence_number = 0;
    const next = (type: string, members: object) => event(type, { ...members, sequence_number: sequence_number++ });
    const response = { id: newId('resp'), object: 'response', created_at: 1, model: 'm', error: null };
    const used = responsesUsage(of);
    return [
      next('response.created', { response: { ...response, status: 'in_progress', output: [], usage: null } }),
      ...items.flatMap((item, output_index) => [
        next('response.output_item.added', { output_index, item }),
        ...('content' in item
          ? [next('response.output_text.delta', { item_id: messageId, output_index, content_index: 0, delta: text })]
          : []),
        next('response.output_item.done', { output_index, item }),
      ]),
      next('response.completed', { response: { ...response, status: 'completed', output: items, usage: used } }),
    ].join('');
  },
  refusal: (tokens) => ({
    error: {
      message: `Your input of ${tokens} tokens exceeds the context window of this model.`,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'input',
    },
  }),
};

const geminiUsage = ({ prompt, completion: of }: Used) => ({
  promptTokenCount: prompt,
  candidatesTokenCount: of,
  totalTokenCount: prompt + of,
});
const gemini: Played = {
  history: 'contents',
  whole: ({ text, used }) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: geminiUsage(used),
    modelVersion: 'm',
  }),
  tools: ({ tools }) =>
    list(tools)
      .flatMap(({ functionDeclarations }) => list(functionDeclarations))
      .map(({ name, parametersJsonSchema: parameters }) => ({ name, parameters }) as unknown as OfferedTool),
  results: ({ contents }) =>
    list(contents)
      .flatMap(({ parts }) => list(parts))
      .filter(({ functionResponse }) => functionResponse !== undefined)
      .map(({ functionResponse }) => JSON.stringify(functionResponse)),
  events({ thinking, text, call, used, held }) {
    const parts = [
      ...(thinking === undefined ? [] : [{ text: thinking, thought: true }]),
      ...(text === undefined ? [] : [{ text }]),
      ...(call === undefined
        ? []
        : [{ functionCall: { name: call.name, args: call.input }, thoughtSignature: SIGNATURE }]),
      ...(held === true ? [{ text: '' }] : []),
    ];
    const usageMetadata = geminiUsage(used);
    return parts
      .map((part, index) => ({
        candidates: [
          {
            content: { role: 'model', parts: [part] },
            ...(index === parts.length - 1 ? { finishReason: 'STOP' } : {}),
            index: 0,
          },
        ],
        usageMetadata,
        modelVersion: 'm',
      }))
      .map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`)
      .join('');
  },
  refusal: (tokens) => ({
    error: {
      code: 400,
      message: `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${CONTEXT_LENGTH}).`,
      status: 'INVALID_ARGUMENT',
    },
  }),
};

const WIRES: Readonly<Record<string, Played>> = {
  '/v1/chat/completions': chat,
  '/v1/messages': messages,
  '/v1/responses': responses,
  '/v1/responses/compact': responses,
};
