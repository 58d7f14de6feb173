import { CHAT_PATH } from '../calls/run-call.ts';
import { bodyOfTool, type Values } from '../tool/use-tool-run.ts';
import { asSent, curl, jsonText, OPENAI, type Sample } from './samples.ts';

/** Code that calls a tool of a service. */
export function codeOfTool(service: string, tool: string, values: Values): readonly Sample[] {
  const body = bodyOfTool(`mcp/${service}/${tool}`, values);
  return [
    {
      id: 'mcp',
      name: 'MCP by curl',
      code: curl(`/mcp/${service}`, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: tool, arguments: values },
      }),
      note: 'Clients of MCP take the same address.',
    },
    {
      id: 'openai',
      name: 'openai',
      code: `${OPENAI}
const { choices } = await client.chat.completions.create(${jsonText(body)});
console.log(choices[0].message.content);
`,
    },
    asSent(CHAT_PATH, { ...body, stream: true }),
  ];
}
