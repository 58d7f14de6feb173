type Json = Readonly<Record<string, unknown>>;

/** A chat wire as its clients call it. The tests of all wires are made from this table. */
export interface TestedWire {
  /** The name in `CHAT_WIRES` of `src/openai/chat-wires.ts`. */
  readonly name: string;
  /** Path of its billed route, with `{model}` where the address names the model. */
  readonly path: string;
  /** How a request is sent whose address has a part of it. Default: all of it in the body, to `path`. */
  sent?(asked: Json): { readonly path: string; readonly body: Json };
  /** The thing that is paid for, in the terms of a payment. */
  readonly noun: string;
  /** A provider may speak it too. */
  readonly native?: true;
  /** `error` of the answer with 401 to a request without a credential. Default: that of chat. */
  readonly unauthorized?: Json | string;
  /** Names at the top of the body that the gateway acts on, with spaces between. */
  readonly fields: string;
  /**
   * A request without its model, for a whole answer; for a stream, `stream: true` is added. `tokens`: the most that the
   * model may write.
   */
  ask(text: string, tokens: number): Json;
  /** The text of a whole answer. */
  said(answer: Json): string;
  /** The text of one event of a stream, or of one line of it. */
  saidIn(event: Json): string;
}

/** How a request is sent, given whole with its model. */
export const requestOf = ({ path, sent }: Pick<TestedWire, 'path' | 'sent'>, asked: Json) =>
  sent?.(asked) ?? { path, body: asked };

const textsOf = (parts: unknown): string =>
  (parts as readonly { readonly text: string }[]).map(({ text }) => text).join('');
const firstOf = <T>(list: unknown): T | undefined => (list as readonly T[] | undefined)?.[0];

const IN_EVERY_BODY = 'model stream models provider session_id max_cost tollgate';
const OF_CHAT = `${IN_EVERY_BODY} tools tool_choice temperature top_p metadata`;

export const WIRES: readonly TestedWire[] = [
  {
    name: 'chat',
    path: '/api/v1/chat/completions',
    noun: 'A chat completion',
    fields: `${OF_CHAT} messages max_tokens max_completion_tokens stop`,
    ask: (text, tokens) => ({ max_tokens: tokens, messages: [{ role: 'user', content: text }] }),
    said: ({ choices }) => firstOf<{ readonly message: { readonly content: string } }>(choices)!.message.content,
    saidIn: ({ choices }) => firstOf<{ readonly delta: { readonly content?: string } }>(choices)?.delta.content ?? '',
  },
  {
    name: 'completions',
    path: '/api/v1/completions',
    noun: 'A completion',
    fields: `${IN_EVERY_BODY} prompt max_tokens temperature stop`,
    ask: (text, tokens) => ({ max_tokens: tokens, prompt: text }),
    said: ({ choices }) => firstOf<{ readonly text: string }>(choices)!.text,
    saidIn: ({ choices }) => firstOf<{ readonly text: string }>(choices)?.text ?? '',
  },
  {
    name: 'messages',
    path: '/api/v1/messages',
    noun: 'A message',
    unauthorized: { type: 'authentication_error' },
    native: true,
    fields: `${OF_CHAT} messages max_tokens system stop_sequences thinking output_config`,
    ask: (text, tokens) => ({ max_tokens: tokens, messages: [{ role: 'user', content: text }] }),
    said: ({ content }) => textsOf(content),
    saidIn: ({ delta }) => (delta as { readonly text?: string } | undefined)?.text ?? '',
  },
  {
    name: 'responses',
    path: '/api/v1/responses',
    noun: 'A response',
    native: true,
    fields: `${OF_CHAT} input max_output_tokens instructions text reasoning prompt_cache_key`,
    ask: (text, tokens) => ({ max_output_tokens: tokens, input: text }),
    said: ({ output }) =>
      (output as readonly { readonly content: unknown }[]).map(({ content }) => textsOf(content)).join(''),
    saidIn: ({ delta }) => (typeof delta === 'string' ? delta : ''),
  },
  {
    name: 'gemini',
    path: '/api/v1beta/models/{model}:generateContent',
    sent({ model, stream, ...body }) {
      const method = stream === true ? 'streamGenerateContent?alt=sse' : 'generateContent';
      return { path: `/api/v1beta/models/${String(model)}:${method}`, body };
    },
    noun: 'An answer',
    native: true,
    unauthorized: { code: 401, status: 'UNAUTHENTICATED' },
    fields:
      'models provider session_id max_cost tollgate tools contents systemInstruction toolConfig generationConfig safetySettings',
    ask: (text, tokens) => ({
      contents: [{ role: 'user', parts: [{ text }] }],
      generationConfig: { maxOutputTokens: tokens },
    }),
    said: saidByGemini,
    saidIn: saidByGemini,
  },
];

type Candidate = { readonly content: { readonly parts: readonly { readonly text?: string }[] } };

function saidByGemini({ candidates }: Json): string {
  const { parts = [] } = firstOf<Candidate>(candidates)?.content ?? {};
  return parts.map(({ text = '' }) => text).join('');
}
