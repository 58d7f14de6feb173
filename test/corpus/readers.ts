import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';

/** What a client sees of a reply. */
interface Seen {
  readonly text: string;
  /** Names and arguments. */
  readonly calls: readonly (readonly [string, unknown])[];
}

/** The SDK of each wire, which reads the reply that a server at this origin gives. */
export type Readers = Readonly<Record<string, (stream: boolean) => Promise<Seen>>>;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export function createReaders(origin: string): Readers {
  const openai = new OpenAI({ baseURL: origin, apiKey: 'k', maxRetries: 0 });
  const anthropic = new Anthropic({ baseURL: origin, apiKey: 'k', maxRetries: 0 });
  const google = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: origin } });
  const user = [{ role: 'user' as const, content: 'x' }];
  const ask = { model: 'm', messages: user };
  return {
    async chat(stream) {
      const { choices } = stream
        ? await openai.chat.completions.stream(ask).finalChatCompletion()
        : await openai.chat.completions.create(ask);
      const { content, tool_calls: calls } = choices[0]!.message;
      return {
        text: content ?? '',
        calls: (calls ?? []).flatMap((call) =>
          call.type === 'function' ? [[call.function.name, parsed(call.function.arguments)] as const] : [],
        ),
      };
    },
    async completions(stream) {
      const asked = { model: 'm', prompt: 'x' };
      const said = stream
        ? await Array.fromAsync(await openai.completions.create({ ...asked, stream }))
        : [await openai.completions.create(asked)];
      return { text: said.map(({ choices }) => choices[0]?.text ?? '').join(''), calls: [] };
    },
    async messages(stream) {
      const asked = { ...ask, max_tokens: 50 };
      const { content } = stream
        ? await anthropic.messages.stream(asked).finalMessage()
        : await anthropic.messages.create(asked);
      return {
        text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
        calls: content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input] as const] : [])),
      };
    },
    async responses(stream) {
      const asked = { model: 'm', input: 'x' };
      const { output, output_text: text } = stream
        ? await openai.responses.stream(asked).finalResponse()
        : await openai.responses.create(asked);
      return {
        text,
        calls: output.flatMap((item) =>
          item.type === 'function_call' ? [[item.name, parsed(item.arguments)] as const] : [],
        ),
      };
    },
    async gemini(stream) {
      const asked = { model: 'm', contents: 'x' };
      const events = stream
        ? await Array.fromAsync(await google.models.generateContentStream(asked))
        : [await google.models.generateContent(asked)];
      const parts = events.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
      return {
        text: parts.map(({ text, thought }) => (thought === true ? '' : (text ?? ''))).join(''),
        calls: parts.flatMap(({ functionCall: call }) => (call ? [[call.name!, call.args] as const] : [])),
      };
    },
  };
}
