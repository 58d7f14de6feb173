import { BOOT } from '../../../app/boot.ts';
import { openaiJs } from '../../../code/openai.ts';
import { jsonText, type Snippet } from '../../../code/snippet.ts';
import { CHAT_PATH } from '../calls/run-call.ts';
import { bodyOfTool, type Values } from '../tool/use-tool-run.ts';
import { asCurl, asSent } from './as-sent.ts';

/** Code that calls a tool of a service. */
export function codeOfTool(service: string, tool: string, values: Values): readonly Snippet[] {
  const body = bodyOfTool(`mcp/${service}/${tool}`, values);
  const params = { name: tool, arguments: values };
  const lines = `const { choices } = await client.chat.completions.create(${jsonText(body)});
console.log(choices[0].message.content);`;
  return [
    {
      ...asCurl(`/mcp/${service}`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      name: 'MCP by curl',
      note: 'Clients of MCP take the same address.',
    },
    { id: 'openai', name: 'openai', code: openaiJs(BOOT.base_url, lines) },
    asSent(CHAT_PATH, { ...body, stream: true }),
  ];
}
