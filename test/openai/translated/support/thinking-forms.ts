type Json = Record<string, unknown>;

/** Thinking as a provider writes it: in a whole message, and in the deltas of a stream. */
export interface ThinkingForm {
  readonly whole: Json;
  readonly deltas: readonly Json[];
  /** The message as it has to come back, with this content. */
  readonly back?: (content: string | null) => Json;
}

const SIGNED = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
const ENCRYPTED = [{ type: 'reasoning.encrypted', data: 'ENC', format: 'openai-responses-v1', id: 'rs_1', index: 0 }];
const BLOCKS = [
  { type: 'thinking', thinking: 'Let me', signature: 'SIG' },
  { type: 'redacted_thinking', data: 'RED' },
];
const extra_content = { google: { thought_signature: 'S' } };
const thinkingPart = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });
const under = (...names: string[]): ThinkingForm => {
  const said = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
  return { whole: said('Let me'), deltas: ['Let', ' ', 'me'].map(said) };
};

export const THINKING_FORMS: Readonly<Record<string, ThinkingForm>> = {
  reasoning_content: under('reasoning_content'),
  reasoning: under('reasoning'),
  'reasoning and reasoning_content': under('reasoning', 'reasoning_content'),
  'reasoning_details with a signature': {
    whole: { reasoning: 'Let me', reasoning_details: [{ ...SIGNED, text: 'Let me', signature: 'SIG' }] },
    deltas: [
      { reasoning: 'Let ', reasoning_details: [{ ...SIGNED, text: 'Let ' }] },
      { reasoning: 'me', reasoning_details: [{ ...SIGNED, text: 'me' }] },
      { reasoning_details: [{ ...SIGNED, signature: 'SIG' }] },
    ],
  },
  'reasoning_details that are encrypted': {
    whole: { reasoning_details: ENCRYPTED },
    deltas: [{ reasoning_details: ENCRYPTED }],
  },
  'a summary, and encrypted details': {
    whole: { reasoning: 'Let me', reasoning_details: [{ type: 'reasoning.summary', summary: 'Let me' }, ...ENCRYPTED] },
    deltas: [
      { reasoning: 'Let me', reasoning_details: [{ type: 'reasoning.summary', summary: 'Let me' }] },
      { reasoning_details: ENCRYPTED },
    ],
  },
  thinking_blocks: {
    whole: { reasoning_content: 'Let me', thinking_blocks: BLOCKS },
    deltas: [
      { reasoning_content: 'Let ', thinking_blocks: [{ type: 'thinking', thinking: 'Let ', signature: '' }] },
      { reasoning_content: 'me', thinking_blocks: [{ type: 'thinking', thinking: 'me', signature: '' }] },
      { thinking_blocks: [{ type: 'thinking', thinking: '', signature: 'SIG' }] },
      { thinking_blocks: [BLOCKS[1]] },
    ],
  },
  'extra_content of a message': { whole: { extra_content }, deltas: [{ extra_content }] },
  'parts of content': {
    whole: { content: [thinkingPart('Let me'), { type: 'text', text: 'Hello' }] },
    deltas: [{ content: [thinkingPart('Let ')] }, { content: [thinkingPart('me')] }],
    back: (content) => ({
      content: [thinkingPart('Let me'), ...(content === null ? [] : [{ type: 'text', text: content }])],
    }),
  },
};
