import { curl, queueVideo, sendByHttp, sendMessage } from '../../code/curl.ts';
import { openaiJs, openaiPy, openaiVideo } from '../../code/openai.ts';
import type { Snippet } from '../../code/snippet.ts';
import type { Service } from '../../api/service.ts';
import type { Kind } from '../../ui/kinds.ts';

export interface Called {
  readonly kind: Kind;
  /** The name of the service. */
  readonly name: string;
  /** The gateway's address, without a path. */
  readonly base: string;
  /** The output of a model that does not chat; null for others. */
  readonly makes: string | null;
  /** A tool of the service, with example arguments. */
  readonly tool: { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
  /** A video length that the model supports. */
  readonly duration: string;
}

/** A placeholder until the tools of the service are known. */
export const FIRST_TOOL: Called['tool'] = { name: '<tool>', args: {} };

export const calledOf = (
  {
    primitive,
    name,
    durations,
    output_modalities,
  }: Pick<Service, 'primitive' | 'name' | 'durations' | 'output_modalities'>,
  base: string,
  tool = FIRST_TOOL,
): Called => ({
  kind: primitive,
  name,
  base,
  makes: madeBy(output_modalities),
  tool,
  duration: durations[0] ?? '5s',
});

function madeBy(modalities: readonly string[]): string | null {
  if (modalities.includes('text')) return null;
  return modalities.find((output) => Object.hasOwn(CODE_OF_OUTPUTS, output)) ?? null;
}

/** Code for models that are called at a route of their own, by their output. */
const CODE_OF_OUTPUTS: Readonly<Record<string, (called: Called) => readonly Snippet[]>> = {
  embeddings,
  embedding: embeddings,
  speech,
  transcription,
  rerank,
  moderation,
};

/** Code for each client that can call the service, shortest first. */
export function snippetsOf(called: Called): readonly Snippet[] {
  const model = CODE_OF_OUTPUTS[called.makes ?? ''] ?? chat;
  const makers = { model, tool: tools, agent, image, video };
  return makers[called.kind](called);
}

function chat({ name, base }: Called): readonly Snippet[] {
  const body = { model: name, messages: [{ role: 'user', content: 'What is a tollgate?' }] };
  return [
    { id: 'curl', name: 'curl', code: curl(`${base}/api/v1/chat/completions`, body) },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `const reply = await client.chat.completions.create({\n  model: '${name}',\n  messages: [{ role: 'user', content: 'What is a tollgate?' }],\n});\nconsole.log(reply.choices[0].message.content);`,
      ),
    },
    {
      id: 'openai-py',
      name: 'openai (Python)',
      code: openaiPy(
        base,
        `reply = client.chat.completions.create(\n    model="${name}",\n    messages=[{"role": "user", "content": "What is a tollgate?"}],\n)\nprint(reply.choices[0].message.content)`,
      ),
    },
    {
      id: 'anthropic',
      name: 'Anthropic',
      code: `import Anthropic from '@anthropic-ai/sdk';\n\nconst client = new Anthropic({ baseURL: '${base}/api', apiKey: process.env.KEY });\nconst message = await client.messages.create({\n  model: '${name}',\n  max_tokens: 500,\n  messages: [{ role: 'user', content: 'What is a tollgate?' }],\n});\nconsole.log(message.content);`,
    },
    {
      id: 'claude-code',
      name: 'Claude Code',
      code: `export ANTHROPIC_BASE_URL=${base}/api\nexport ANTHROPIC_AUTH_TOKEN=$KEY\nexport ANTHROPIC_API_KEY=""\nexport ANTHROPIC_MODEL=${name}\nexport ANTHROPIC_DEFAULT_HAIKU_MODEL=${name}\nclaude`,
    },
    {
      id: 'codex',
      name: 'Codex',
      note: 'In ~/.codex/config.toml. Codex reads the key from TOLLGATE_API_KEY.',
      code: `model = "${name}"\nmodel_provider = "tollgate"\n\n[model_providers.tollgate]\nname = "tollgate"\nbase_url = "${base}/api/v1"\nenv_key = "TOLLGATE_API_KEY"\nwire_api = "responses"`,
    },
    {
      id: 'a2a',
      name: 'A2A (curl)',
      code: sendMessage(`${base}/a2a/model/${name}`, 'What is a tollgate?'),
      note: 'The model as an agent.',
    },
  ];
}

function embeddings({ name, base }: Called): readonly Snippet[] {
  return [
    {
      id: 'curl',
      name: 'curl',
      code: curl(`${base}/api/v1/embeddings`, { model: name, input: 'What is a tollgate?' }),
    },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `const { data } = await client.embeddings.create({ model: '${name}', input: 'What is a tollgate?' });\nconsole.log(data[0].embedding.length);`,
      ),
    },
    {
      id: 'openai-py',
      name: 'openai (Python)',
      code: openaiPy(
        base,
        `reply = client.embeddings.create(model="${name}", input="What is a tollgate?")\nprint(len(reply.data[0].embedding))`,
      ),
    },
  ];
}

function rerank({ name, base }: Called): readonly Snippet[] {
  const documents = ['A gate on a road where travellers pay.', 'An apple.'];
  return [
    {
      id: 'curl',
      name: 'curl',
      code: curl(`${base}/api/v1/rerank`, { model: name, query: 'What is a tollgate?', documents }),
    },
    {
      id: 'cohere-js',
      name: 'Cohere (JS)',
      code: `import { CohereClientV2 } from 'cohere-ai';\n\nconst client = new CohereClientV2({ environment: '${base}', token: process.env.KEY });\nconst { results } = await client.rerank({\n  model: '${name}',\n  query: 'What is a tollgate?',\n  documents: ${JSON.stringify(documents)},\n});\nconsole.log(results[0].index);`,
    },
  ];
}

function moderation({ name, base }: Called): readonly Snippet[] {
  return [
    { id: 'curl', name: 'curl', code: curl(`${base}/api/v1/moderations`, { model: name, input: 'A text to judge.' }) },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `const { results } = await client.moderations.create({ model: '${name}', input: 'A text to judge.' });\nconsole.log(results[0].flagged);`,
      ),
    },
  ];
}

function speech({ name, base }: Called): readonly Snippet[] {
  const input = 'The gate is open.';
  return [
    {
      id: 'curl',
      name: 'curl',
      code: curl(`${base}/api/v1/audio/speech`, { model: name, voice: 'alloy', input }, { more: ['-o speech.mp3'] }),
    },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `const speech = await client.audio.speech.create({ model: '${name}', voice: 'alloy', input: '${input}' });\nconsole.log((await speech.arrayBuffer()).byteLength);`,
      ),
    },
    {
      id: 'openai-py',
      name: 'openai (Python)',
      code: openaiPy(
        base,
        `speech = client.audio.speech.create(model="${name}", voice="alloy", input="${input}")\nspeech.write_to_file("speech.mp3")`,
      ),
    },
  ];
}

function transcription({ name, base }: Called): readonly Snippet[] {
  return [
    {
      id: 'curl',
      name: 'curl',
      code: `curl ${base}/api/v1/audio/transcriptions \\\n  -H "Authorization: Bearer $KEY" \\\n  -F model=${name} \\\n  -F file=@speech.mp3`,
    },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `const file = new File([await readFile('speech.mp3')], 'speech.mp3');\nconst { text } = await client.audio.transcriptions.create({ model: '${name}', file });\nconsole.log(text);`,
      ).replace('import ', "import { readFile } from 'node:fs/promises';\nimport "),
    },
    {
      id: 'openai-py',
      name: 'openai (Python)',
      code: openaiPy(
        base,
        `reply = client.audio.transcriptions.create(model="${name}", file=open("speech.mp3", "rb"))\nprint(reply.text)`,
      ),
    },
  ];
}

function tools({ name, base, tool }: Called): readonly Snippet[] {
  const url = `${base}/mcp/${name}`;
  const params = { name: tool.name, arguments: tool.args };
  return [
    {
      id: 'curl',
      name: 'curl',
      code: curl(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    },
    {
      id: 'claude-code',
      name: 'Claude Code',
      code: `claude mcp add --transport http ${shortName(name)} ${url} \\\n  --header "Authorization: Bearer $KEY"`,
    },
    { id: 'codex', name: 'Codex', code: `codex mcp add ${shortName(name)} --url ${url} --bearer-token-env-var KEY` },
    {
      id: 'mcp',
      name: 'MCP SDK (JS)',
      code: `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';\n\nconst client = new Client({ name: 'example', version: '1.0.0' });\nawait client.connect(\n  new StreamableHTTPClientTransport(new URL('${url}'), {\n    requestInit: { headers: { Authorization: \`Bearer \${process.env.KEY}\` } },\n  }),\n);\nconsole.log(await client.callTool(${JSON.stringify(params)}));`,
    },
    {
      id: 'mcp-json',
      name: 'Cursor, VS Code',
      note: 'In the mcp.json of the editor.',
      code: JSON.stringify(
        { mcpServers: { [shortName(name)]: { url, headers: { Authorization: 'Bearer svc-sk-…' } } } },
        null,
        2,
      ),
    },
  ];
}

const shortName = (name: string) =>
  name
    .split('/')
    .at(-1)!
    .replaceAll(/[^\w-]/g, '-');

function agent({ name, base }: Called): readonly Snippet[] {
  const url = `${base}/a2a/${name}`;
  return [
    { id: 'curl', name: 'curl', code: sendMessage(url, 'Hello') },
    {
      id: 'a2a',
      name: 'A2A (HTTP+JSON)',
      code: sendByHttp(url, 'Hello'),
    },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      note: 'The agent as a chat model.',
      code: openaiJs(
        base,
        `const reply = await client.chat.completions.create({\n  model: 'a2a/${name}',\n  messages: [{ role: 'user', content: 'Hello' }],\n});\nconsole.log(reply.choices[0].message.content);`,
      ),
    },
    {
      id: 'card',
      name: 'Agent card',
      code: `curl ${url}/.well-known/agent-card.json`,
      note: 'For clients that begin with the card. It needs no key.',
    },
  ];
}

function image({ name, base }: Called): readonly Snippet[] {
  const prompt = 'A tollgate in the morning';
  return [
    {
      id: 'curl',
      name: 'curl',
      code: curl(
        `${base}/api/v1/image/generate`,
        { model: name, prompt, output_type: 'file' },
        { more: ['-o image.png'] },
      ),
    },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `const { data } = await client.images.generate({ model: '${name}', prompt: '${prompt}' });\nconsole.log(data[0].b64_json.length);`,
      ),
    },
    {
      id: 'openai-py',
      name: 'openai (Python)',
      code: openaiPy(
        base,
        `image = client.images.generate(model="${name}", prompt="${prompt}")\nprint(len(image.data[0].b64_json))`,
      ),
    },
    {
      id: 'quote',
      name: 'Price before',
      code: curl(`${base}/api/v1/image/generate/quote`, { model: name, prompt }),
      note: 'Says what the call would cost, and charges nothing.',
    },
  ];
}

function video({ name, base, duration }: Called): readonly Snippet[] {
  const prompt = 'A tollgate in the morning';
  return [
    { id: 'curl', name: 'curl', code: queueVideo(base, { model: name, prompt, duration }) },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiVideo(base, { model: name, prompt, seconds: String(Number.parseInt(duration, 10)) }),
    },
  ];
}
