import OpenAI from 'openai';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';

/** A demo provider without waits between tokens, and an OpenAI client that talks to it. */
export async function startDemo(): Promise<{
  readonly demo: DemoProvider;
  readonly client: OpenAI;
  ask(text: string, more?: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>): Promise<OpenAI.ChatCompletion>;
}> {
  const demo = await runDemoProvider({ paceMs: 0 });
  const client = new OpenAI({ baseURL: demo.url, apiKey: 'unused', maxRetries: 0 });
  return {
    demo,
    client,
    ask: (text, more) =>
      client.chat.completions.create({ model: 'demo/chat', messages: [{ role: 'user', content: text }], ...more }),
  };
}
