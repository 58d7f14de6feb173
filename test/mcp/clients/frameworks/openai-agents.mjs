// Runs where OpenAI's Agents SDK is installed, see frameworks.test.ts.
import {
  Agent,
  MCPServerStreamableHttp,
  run,
  setDefaultOpenAIClient,
  setOpenAIAPI,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const { ORIGIN, KEY, MODEL, AGENT } = process.env;
setTracingDisabled(true);
setOpenAIAPI('chat_completions');
setDefaultOpenAIClient(new OpenAI({ apiKey: KEY, baseURL: `${ORIGIN}/api/v1`, maxRetries: 0 }));

const brief = new Agent({ name: 'Brief', model: MODEL, modelSettings: { maxTokens: 20 } });
const whole = await run(brief, 'hello !tokens:4');
const stream = await run(brief, 'hello !tokens:6', { stream: true });
let streamed = '';
for await (const text of stream.toTextStream()) streamed += text;
await stream.completed;
let toolCall = null;
const parameters = z.object({ city: z.string(), days: z.number() });
const weather = tool({
  name: 'weather',
  description: 'The weather',
  parameters,
  execute: () => (toolCall = 'weather'),
});
const modelSettings = { toolChoice: 'required' };
await run(
  new Agent({ name: 'Asking', model: MODEL, modelSettings, tools: [weather], toolUseBehavior: 'stop_on_first_tool' }),
  'weather?',
);
const refused = await run(brief, 'hi !status:400').catch((error) => error.message);

const requestInit = { headers: { Authorization: `Bearer ${KEY}` } };
const server = new MCPServerStreamableHttp({ name: 'tollgate', url: `${ORIGIN}/mcp`, requestInit });
await server.connect();
const tools = await server.listTools();
const answer = await server.callTool('ask_agent', { agent: AGENT, message: 'echo good morning' });
await server.close();

const said = JSON.stringify({
  text: whole.finalOutput,
  outputTokens: whole.state.usage.outputTokens,
  streamed,
  toolCall,
  refused,
  tools: tools.map(({ name }) => name),
  answer,
});
process.stdout.write(`${said}\n`, () => process.exit(0));
