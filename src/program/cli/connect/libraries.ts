import { join } from 'node:path';
import type { GatewayClient, Setup } from './client.ts';
import type { GatewayConnection } from './connection.ts';

/**
 * A library that reads address and key from the environment. They are written to `.env`, and the first lines of a
 * program are printed.
 */
const library =
  (
    variables: (connection: GatewayConnection) => Readonly<Record<string, string>>,
    program: (model: string) => string,
    reader = 'node --env-file=.env reads the file, and so does python-dotenv.',
  ) =>
  (connection: GatewayConnection, { cwd }: { readonly cwd: string }): Setup => ({
    files: [
      {
        path: join(cwd, '.env'),
        ofProject: true,
        format: 'dotenv',
        settings: Object.entries(variables(connection)).map(([name, value]) => ({ at: [name], value })),
      },
    ],
    tryIt: program(connection.model),
    notes: [`${reader} It has the key: keep it out of git.`],
  });

const openaiVariables = ({ base, key }: GatewayConnection) => ({
  OPENAI_BASE_URL: `${base}/api/v1`,
  OPENAI_API_KEY: key,
});
/** Some clients read exactly what OpenAI's API answers. Below `/v1` the gateway answers like that. */
const strictVariables = ({ base, key }: GatewayConnection) => ({ OPENAI_BASE_URL: `${base}/v1`, OPENAI_API_KEY: key });
const tollgateVariables = ({ base, key }: GatewayConnection) => ({ TOLLGATE_URL: base, TOLLGATE_API_KEY: key });

export const LIBRARIES: readonly GatewayClient[] = [
  {
    name: 'openai',
    title: 'OpenAI SDK (JavaScript, Python)',
    speaks: 'chat',
    models: library(
      openaiVariables,
      (model) => `import OpenAI from 'openai';
const client = new OpenAI();
const { choices } = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
});`,
    ),
  },
  {
    name: 'openai-v1',
    packages: ['openai-java', 'async-openai', 'go-openai', 'autogen-ext'],
    title: 'OpenAI clients that read strictly: openai-java, async-openai, go-openai, autogen-ext',
    speaks: 'chat',
    models: library(
      strictVariables,
      (model) => `// Java
OpenAIClient client = OpenAIOkHttpClient.fromEnv();
ChatCompletion answer = client.chat().completions().create(
    ChatCompletionCreateParams.builder().model("${model}").addUserMessage("Hello").build());`,
      'set -a; . ./.env; set +a reads the file into the environment of a shell.',
    ),
  },
  {
    name: 'anthropic',
    title: 'Anthropic SDK (JavaScript, Python)',
    speaks: 'messages',
    models: library(
      ({ base, key }) => ({ ANTHROPIC_BASE_URL: `${base}/api`, ANTHROPIC_API_KEY: key }),
      (model) => `import Anthropic from '@anthropic-ai/sdk';
const client = new Anthropic();
const { content } = await client.messages.create({
  model: '${model}',
  max_tokens: 1000,
  messages: [{ role: 'user', content: 'Hello' }],
});`,
    ),
  },
  {
    name: 'google-genai',
    packages: ['@google/genai', 'google-genai'],
    title: 'Google Gen AI SDK (JavaScript, Python, Go)',
    speaks: 'gemini',
    models: library(
      ({ base, key }) => ({ GOOGLE_GEMINI_BASE_URL: `${base}/api`, GEMINI_API_KEY: key }),
      (model) => `import { GoogleGenAI } from '@google/genai';
const client = new GoogleGenAI({});
const { text } = await client.models.generateContent({ model: '${model}', contents: 'Hello' });`,
    ),
  },
  {
    name: 'langchain',
    title: 'LangChain (JavaScript, Python)',
    speaks: 'chat',
    models: library(
      openaiVariables,
      (model) => `import { ChatOpenAI } from '@langchain/openai';
const model = new ChatOpenAI({ model: '${model}' });
const { content } = await model.invoke('Hello');`,
    ),
  },
  {
    name: 'ai-sdk',
    title: 'AI SDK',
    speaks: 'chat',
    models: library(
      tollgateVariables,
      (model) => `import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';
const { TOLLGATE_URL, TOLLGATE_API_KEY: apiKey } = process.env;
const baseURL = \`\${TOLLGATE_URL}/api/v1\`;
// Without the last member the AI SDK sends no schemas.
const tollgate = createOpenAICompatible({ name: 'tollgate', baseURL, apiKey, supportsStructuredOutputs: true });
const { text } = await generateText({ model: tollgate('${model}'), prompt: 'Hello' });`,
    ),
  },
  {
    name: 'openrouter-sdk',
    title: 'OpenRouter SDK',
    speaks: 'chat',
    models: library(
      tollgateVariables,
      (model) => `import { OpenRouter } from '@openrouter/sdk';
const { TOLLGATE_URL, TOLLGATE_API_KEY: apiKey } = process.env;
const client = new OpenRouter({ serverURL: \`\${TOLLGATE_URL}/api/v1\`, apiKey });
const { choices } = await client.chat.send({
  chatRequest: { model: '${model}', messages: [{ role: 'user', content: 'Hello' }] },
});`,
    ),
  },
  {
    name: 'a2a',
    title: 'A2A clients',
    speaks: 'a2a',
    models: ({ base, key, model }) => {
      const address = `${base}/a2a/${model.startsWith('a2a/') ? model.slice(4) : `model/${model}`}`;
      return {
        files: [],
        byHand: `Address  ${address}/\nCard     ${address}/.well-known/agent-card.json\nHeader   Authorization: Bearer ${key}`,
        notes: ['--model a2a/<agent> names an agent. Every model is an agent too.'],
      };
    },
  },
  {
    name: 'x402',
    title: 'x402 clients: @x402/fetch, @aimo.network/client',
    speaks: 'x402',
    models: ({ base, model }) => ({
      files: [],
      byHand: `A wallet pays each call: no key is needed.\n  Base URL  ${base}/api/v1\n  Model     ${model}`,
      notes: ['The gateway needs a chain: its /docs/guide/run/take-usdc tells how.'],
    }),
  },
];
