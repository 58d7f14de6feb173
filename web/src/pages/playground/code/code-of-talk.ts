import { CHAT_PATH, type CallBody } from '../calls/run-call.ts';
import type { Service } from '../catalogue.ts';
import { asSent, curl, jsonText, OPENAI, type Sample } from './samples.ts';

/** Code for a message to a model or an agent. */
export function codeOfTalk(service: Service, body: CallBody): readonly Sample[] {
  const openai = `${OPENAI}
const stream = await client.chat.completions.create(${jsonText({ ...body, stream: true })});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');
`;
  return [
    { id: 'curl', name: 'curl', code: curl(CHAT_PATH, body) },
    { id: 'openai', name: 'openai', code: openai },
    ...(service.kind === 'agent' ? [a2a(service.name, body)] : []),
    asSent(CHAT_PATH, { ...body, stream: true }),
  ];
}

function a2a(agent: string, body: CallBody): Sample {
  const messages = body['messages'] as readonly { readonly content: unknown }[];
  const text = messages.at(-1)!.content;
  return {
    id: 'a2a',
    name: 'A2A',
    code: curl(`/a2a/${agent}`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: {
        message: {
          messageId: 'my-first-message',
          role: 'user',
          parts: [{ kind: 'text', text: typeof text === 'string' ? text : 'Hello' }],
        },
      },
    }),
    note: 'The same call by the protocol of agents. A new messageId asks anew.',
  };
}
