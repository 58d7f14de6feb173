// Runs where LangChain is installed, see frameworks.test.ts.
import { ChatOpenAI } from '@langchain/openai';

const { ORIGIN, KEY, MODEL } = process.env;
const model = new ChatOpenAI({
  model: MODEL,
  apiKey: KEY,
  maxTokens: 20,
  maxRetries: 0,
  configuration: { baseURL: `${ORIGIN}/api/v1` },
});
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
};
const whole = await model.invoke('hello !tokens:4');
let streamed = '';
for await (const chunk of await model.stream('hello !tokens:6')) streamed += chunk.content;
const asked = await model.bindTools([weather], { tool_choice: 'required' }).invoke('weather?');
const refused = await model.invoke('hi !status:400').catch((error) => error.message);

console.log(
  JSON.stringify({
    text: whole.content,
    outputTokens: whole.usage_metadata.output_tokens,
    streamed,
    toolCall: asked.tool_calls[0].name,
    refused,
  }),
);
