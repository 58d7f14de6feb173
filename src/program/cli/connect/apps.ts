import { join } from 'node:path';
import { isLoopback } from '#security';
import type { GatewayClient, Machine } from './client.ts';
import { mcpServer } from './coding-agents.ts';

const openWebUi: GatewayClient = {
  name: 'open-webui',
  title: 'Open WebUI',
  speaks: 'chat',
  models({ base, key }) {
    const { url, host } = fromContainer(base);
    return {
      files: [],
      byHand:
        'docker run -d -p 3000:8080 \\\n' +
        (host ? `  --add-host=host.docker.internal:host-gateway \\\n` : '') +
        `  -e OPENAI_API_BASE_URL=${url}/api/v1 \\\n  -e OPENAI_API_KEY=${key} \\\n` +
        '  -v open-webui:/app/backend/data --name open-webui ghcr.io/open-webui/open-webui:main',
      notes: [
        'In an installation that has run before: Admin Panel, Settings, Connections, OpenAI API. It keeps what it was first started with.',
        ...(host ? [LISTENS_LOCALLY] : []),
      ],
    };
  },
};

const librechat: GatewayClient = {
  name: 'librechat',
  title: 'LibreChat',
  speaks: 'chat',
  models({ base, key, model, models }, { cwd }) {
    const { url, host } = fromContainer(base);
    const endpoint = {
      apiKey: '${TOLLGATE_API_KEY}',
      baseURL: `${url}/api/v1`,
      models: { default: [...new Set([model, ...models.map(({ name }) => name)])], fetch: true },
      titleConvo: true,
      titleModel: model,
    };
    return {
      files: [
        {
          path: join(cwd, 'librechat.yaml'),
          ofProject: true,
          format: 'yaml',
          settings: [
            { at: ['version'], value: '1.3.17', keep: true },
            ...Object.entries(endpoint).map(([name, value]) => ({
              at: ['endpoints', 'custom', { name: 'tollgate' }, name],
              value,
            })),
          ],
        },
        {
          path: join(cwd, '.env'),
          ofProject: true,
          format: 'dotenv',
          settings: [{ at: ['TOLLGATE_API_KEY'], value: key }],
        },
      ],
      tryIt: 'docker compose up -d',
      notes: [
        'Run this in the folder of LibreChat. Its docker-compose.override.yml has to mount librechat.yaml.',
        ...(host ? [LISTENS_LOCALLY] : []),
      ],
    };
  },
};

const n8n: GatewayClient = {
  name: 'n8n',
  title: 'n8n',
  speaks: 'chat',
  models({ base, key, model }) {
    return {
      files: [],
      byHand:
        'In n8n: Credentials, Create, OpenAI\n' +
        `  API Key   ${key}\n  Base URL  ${base}/api/v1\n` +
        `Then in the node "OpenAI Chat Model" take this credential, and ${model} as the model.`,
    };
  },
  tools({ base, key }) {
    return {
      files: [],
      byHand:
        'In the node "MCP Client Tool"\n' +
        `  Endpoint           ${base}/mcp\n  Server Transport   HTTP Streamable\n  Authentication     Bearer Auth, with ${key}`,
    };
  },
};

const vscode: GatewayClient = {
  name: 'vscode',
  title: 'VS Code',
  speaks: null,
  tools: ({ base }, { cwd }) => ({
    files: [
      {
        path: join(cwd, '.vscode', 'mcp.json'),
        ofProject: true,
        format: 'json',
        settings: [
          // The file is part of the project, so it must not have the key. VS Code asks for it.
          { at: ['inputs'], value: [KEY_INPUT], keep: true },
          { at: ['servers', 'tollgate', 'type'], value: 'http' },
          { at: ['servers', 'tollgate', 'url'], value: `${base}/mcp` },
          { at: ['servers', 'tollgate', 'headers', 'Authorization'], value: 'Bearer ${input:tollgate}' },
        ],
      },
    ],
    notes: [
      'VS Code asks for the key when it starts the server, and keeps it. Run this in the folder of your project.',
    ],
  }),
};
const KEY_INPUT = { id: 'tollgate', type: 'promptString', description: 'tollgate key', password: true };

const claudeDesktop: GatewayClient = {
  name: 'claude-desktop',
  title: 'Claude Desktop',
  speaks: null,
  tools: ({ base, key }, machine) => ({
    files: [
      {
        path: claudeDesktopFile(machine),
        format: 'json',
        settings: [
          { at: ['mcpServers', 'tollgate', 'command'], value: 'npx' },
          {
            at: ['mcpServers', 'tollgate', 'args'],
            // Without a space, because some versions split arguments at spaces.
            value: ['-y', 'mcp-remote', `${base}/mcp`, '--header', 'Authorization:${AUTHORIZATION}'],
          },
          { at: ['mcpServers', 'tollgate', 'env', 'AUTHORIZATION'], value: `Bearer ${key}` },
        ],
      },
    ],
    notes: [
      'Its file takes programs alone, so mcp-remote of npm goes between. npx fetches it at the first start.',
      'Start Claude Desktop again.',
    ],
  }),
};

function claudeDesktopFile({ home, env, platform }: Machine): string {
  const folder =
    platform === 'darwin'
      ? join(home, 'Library', 'Application Support')
      : platform === 'win32'
        ? env['APPDATA'] || join(home, 'AppData', 'Roaming')
        : env['XDG_CONFIG_HOME'] || join(home, '.config');
  return join(folder, 'Claude', 'claude_desktop_config.json');
}

const inspector: GatewayClient = {
  name: 'inspector',
  title: 'MCP Inspector',
  speaks: null,
  tools: ({ base, key }) => ({
    files: [],
    tryIt: `npx @modelcontextprotocol/inspector --cli ${base}/mcp --transport http --header "Authorization: Bearer ${key}" --method tools/list`,
  }),
};

const otherMcp: GatewayClient = {
  name: 'mcp',
  title: 'other MCP clients',
  speaks: null,
  tools: (connection, { cwd }) => ({
    files: [
      {
        path: join(cwd, '.mcp.json'),
        ofProject: true,
        format: 'json',
        settings: mcpServer('mcpServers', connection, 'http'),
      },
    ],
    notes: ['The transport is Streamable HTTP. The file has the key: keep it out of git.'],
  }),
};

const LISTENS_LOCALLY =
  'A container reaches a gateway of its host only if the gateway listens on more than 127.0.0.1: start it with --host 0.0.0.0.';

/** The gateway's address for a container. `host`: the gateway is on this machine. */
function fromContainer(base: string): { readonly url: string; readonly host: boolean } {
  const url = new URL(base);
  if (!isLoopback(url.hostname)) return { url: base, host: false };
  url.hostname = 'host.docker.internal';
  return { url: url.href.replace(/\/$/, ''), host: true };
}

export const APPS: readonly GatewayClient[] = [openWebUi, librechat, n8n, vscode, claudeDesktop, inspector, otherMcp];
