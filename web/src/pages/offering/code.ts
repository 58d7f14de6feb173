import type { Kind } from '../../ui/kinds.ts';

/** Code that calls a service, for one client. */
export interface Snippet {
  readonly id: string;
  readonly name: string;
  readonly code: string;
  /** A line above the code: where it goes, or what it needs. */
  readonly note?: string;
}

export interface Called {
  readonly kind: Kind;
  /** The name of the service. */
  readonly name: string;
  /** The address of the gateway, without a path. */
  readonly base: string;
  /** A model that makes vectors, and no text. */
  readonly embeds: boolean;
  /** A tool of the service with arguments that it may take. */
  readonly tool: { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
  /** A length that the video model makes. */
  readonly duration: string;
}

const JSON_TYPE = `-H 'Content-Type: application/json'`;
const AUTH = '-H "Authorization: Bearer $KEY"';
/** For a shell, between single quotes. */
const quoted = (value: unknown) => JSON.stringify(value).replaceAll("'", `'\\''`);
const post = (url: string, body: unknown, after = '') =>
  `curl ${url} \\\n  ${AUTH} ${JSON_TYPE} \\\n  -d '${quoted(body)}'${after}`;

const KEY_NOTE = 'KEY is an API key. The dashboard makes one.';

/** Code for each client that can call the service, the shortest first. */
export function snippetsOf(called: Called): readonly Snippet[] {
  const makers = { model: called.embeds ? embeddings : chat, tool: tools, agent, image, video };
  return makers[called.kind](called);
}

const openaiJs = (base: string, lines: string) =>
  `import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${base}/api/v1', apiKey: process.env.KEY });\n${lines}`;
const openaiPy = (base: string, lines: string) =>
  `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${base}/api/v1", api_key=os.environ["KEY"])\n${lines}`;

function chat({ name, base }: Called): readonly Snippet[] {
  const body = { model: name, messages: [{ role: 'user', content: 'What is a tollgate?' }] };
  return [
    { id: 'curl', name: 'curl', code: post(`${base}/api/v1/chat/completions`, body), note: KEY_NOTE },
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
      name: 'A2A',
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
      code: post(`${base}/api/v1/embeddings`, { model: name, input: 'What is a tollgate?' }),
      note: KEY_NOTE,
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

function tools({ name, base, tool }: Called): readonly Snippet[] {
  const url = `${base}/mcp/${name}`;
  const params = { name: tool.name, arguments: tool.args };
  return [
    {
      id: 'curl',
      name: 'curl',
      code: post(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      note: KEY_NOTE,
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

const sendMessage = (url: string, text: string) =>
  post(url, {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: { message: { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text }] } },
  });

function agent({ name, base }: Called): readonly Snippet[] {
  const url = `${base}/a2a/${name}`;
  return [
    { id: 'curl', name: 'curl', code: sendMessage(url, 'Hello'), note: KEY_NOTE },
    {
      id: 'a2a',
      name: 'A2A (HTTP+JSON)',
      code: post(`${url}/message:send`, {
        message: { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'Hello' }] },
      }),
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
      code: post(`${base}/api/v1/image/generate`, { model: name, prompt, output_type: 'file' }, ' -o image.png'),
      note: KEY_NOTE,
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
      code: post(`${base}/api/v1/image/generate/quote`, { model: name, prompt }),
      note: 'Says what the call would cost, and charges nothing.',
    },
  ];
}

function video({ name, base, duration }: Called): readonly Snippet[] {
  const prompt = 'A tollgate in the morning';
  const queue = post(`${base}/api/v1/video/queue`, { model: name, prompt, duration });
  const retrieve = `curl ${base}/api/v1/video/retrieve \\\n  ${AUTH} ${JSON_TYPE} \\\n  -d '{"task_id":"<id>","wait_for_final":true}' -o video.mp4`;
  return [
    {
      id: 'curl',
      name: 'curl',
      code: `${queue}\n\n# A video takes minutes. Ask for it with the id of the answer:\n${retrieve}`,
      note: KEY_NOTE,
    },
    {
      id: 'openai-js',
      name: 'openai (JS)',
      code: openaiJs(
        base,
        `let video = await client.videos.create({ model: '${name}', prompt: '${prompt}', seconds: '${Number.parseInt(duration, 10)}' });\nwhile (video.status === 'queued' || video.status === 'in_progress') video = await client.videos.retrieve(video.id);\nconst file = await client.videos.downloadContent(video.id);`,
      ),
    },
  ];
}
