import { BOOT } from '../../../app/boot.ts';
import { sendMessage } from '../../../code/curl.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText, type Snippet } from '../../../code/snippet.ts';
import { CHAT_PATH, type CallBody } from '../calls/run-call.ts';
import type { Service } from '../catalogue.ts';
import { asCurl, asSent } from './as-sent.ts';

/** Code that sends a message to a model or an agent. */
export function codeOfChat(service: Service, body: CallBody): readonly Snippet[] {
  const lines = `const stream = await client.chat.completions.create(${jsonText({ ...body, stream: true })});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');`;
  return [
    asCurl(CHAT_PATH, body),
    { id: 'openai', name: 'openai', code: openaiJs(BOOT.base_url, lines) },
    ...(service.kind === 'agent' ? [a2a(service.name, body)] : []),
    asSent(CHAT_PATH, { ...body, stream: true }),
  ];
}

function a2a(agent: string, body: CallBody): Snippet {
  const messages = body['messages'] as readonly { readonly content: unknown }[];
  const text = messages.at(-1)!.content;
  return {
    id: 'a2a',
    name: 'A2A (curl)',
    code: sendMessage(`${BOOT.base_url}/a2a/${agent}`, typeof text === 'string' ? text : 'Hello'),
    note: 'The same call by the protocol of agents.',
  };
}
