import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GatewayClient, Machine, SettingsFile, Setup } from './client.ts';
import type { GatewayConnection } from './connection.ts';
import type { Setting } from './formats.ts';

const bearer = (key: string) => `Bearer ${key}`;

/** An MCP server at an address, in the JSON that most clients use. */
export const mcpServer = (list: string, { base, key }: GatewayConnection, type?: string): readonly Setting[] => [
  ...(type === undefined ? [] : [{ at: [list, 'tollgate', 'type'], value: type }]),
  { at: [list, 'tollgate', 'url'], value: `${base}/mcp` },
  { at: [list, 'tollgate', 'headers', 'Authorization'], value: bearer(key) },
];

/** The variable with the key. A file that a project shares names it instead of the key. */
const KEY_VARIABLE = 'TOLLGATE_API_KEY';
const KEY_NOTE = `The file may be shared, so it has no key. Set ${KEY_VARIABLE} where the client starts.`;

/** The context of a model in tokens; undefined if no provider declares it, and for agents and tools. */
const contextOf = (model: string, models: GatewayConnection['models']): number | undefined =>
  models.find(({ name }) => name === model)?.contextLength ?? undefined;

/** The context to write where no provider declares one, since the settings need a number. */
const UNKNOWN_CONTEXT = 32_768;

/** The tokens that Claude Code needs for its own prompt and keeps free for an answer. */
const LEAST_CONTEXT = 65_536;

const claudeModels = (path: string, ofProject: boolean, { base, key, model, models }: GatewayConnection): Setup => {
  const context = contextOf(model, models);
  const variables = {
    ANTHROPIC_BASE_URL: `${base}/api`,
    ANTHROPIC_AUTH_TOKEN: key,
    // Empty, because a key of Anthropic that is set elsewhere would be sent too.
    ANTHROPIC_API_KEY: '',
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    // For a model that it does not know, Claude Code assumes a million.
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: context?.toString(),
  };
  return {
    files: [
      {
        path,
        ...(ofProject ? { ofProject } : {}),
        format: 'json',
        settings: Object.entries(variables).map(([name, value]) => ({ at: ['env', name], value })),
      },
    ],
    tryIt: 'claude',
    notes: [
      ...(context !== undefined && context < LEAST_CONTEXT
        ? [`Claude Code needs about ${LEAST_CONTEXT} tokens of context, and ${model} has ${context}.`]
        : []),
      ...(ofProject ? ['The file is yours alone, and has the key: keep it out of git.'] : []),
    ],
  };
};

const claudeCode: GatewayClient = {
  name: 'claude-code',
  title: 'Claude Code',
  speaks: 'messages',
  models: (connection, { home, env }) =>
    claudeModels(join(env['CLAUDE_CONFIG_DIR'] || join(home, '.claude'), 'settings.json'), false, connection),
  tools: (connection, { home, env }) => ({
    files: [
      {
        path: env['CLAUDE_CONFIG_DIR'] ? join(env['CLAUDE_CONFIG_DIR'], '.claude.json') : join(home, '.claude.json'),
        format: 'json',
        settings: mcpServer('mcpServers', connection, 'http'),
      },
    ],
    tryIt: 'claude mcp list',
    notes: ['Claude Code writes this file too: end it first.'],
  }),
  inProject: {
    models: (connection, { cwd }) => claudeModels(join(cwd, '.claude', 'settings.local.json'), true, connection),
    tools: (connection, { cwd }) => ({
      files: [
        {
          path: join(cwd, '.mcp.json'),
          ofProject: true,
          format: 'json',
          settings: mcpServer('mcpServers', { ...connection, key: `\${${KEY_VARIABLE}}` }, 'http'),
        },
      ],
      tryIt: 'claude mcp list',
      notes: [KEY_NOTE, 'Claude Code asks you before it uses the servers of a project.'],
    }),
  },
};

const codex: GatewayClient = {
  name: 'codex',
  title: 'Codex',
  speaks: 'responses',
  models({ base, key, model, models }, { home, env }) {
    const context = contextOf(model, models);
    const provider = {
      name: 'tollgate',
      base_url: `${base}/api/v1`,
      wire_api: 'responses',
      experimental_bearer_token: key,
    };
    return {
      files: [
        {
          path: join(env['CODEX_HOME'] || join(home, '.codex'), 'config.toml'),
          format: 'toml',
          settings: [
            { at: ['model'], value: model },
            { at: ['model_provider'], value: 'tollgate' },
            { at: ['model_context_window'], value: context },
            ...Object.entries(provider).map(([name, value]) => ({ at: ['model_providers', 'tollgate', name], value })),
            // Removed, because with both settings Codex expects the key in the variable.
            { at: ['model_providers', 'tollgate', 'env_key'], value: undefined },
          ],
        },
      ],
      tryIt: 'codex',
    };
  },
  tools: ({ base, key }, { home, env }) => ({
    files: [
      {
        path: join(env['CODEX_HOME'] || join(home, '.codex'), 'config.toml'),
        format: 'toml',
        settings: [
          { at: ['mcp_servers', 'tollgate', 'url'], value: `${base}/mcp` },
          { at: ['mcp_servers', 'tollgate', 'http_headers'], value: { Authorization: bearer(key) } },
          { at: ['mcp_servers', 'tollgate', 'bearer_token_env_var'], value: undefined },
        ],
      },
    ],
    tryIt: 'codex mcp list',
    notes: [
      'codex exec cannot ask you before it calls a tool. default_tools_approval_mode = "approve" below [mcp_servers.tollgate] allows its tools.',
    ],
  }),
  // Codex takes no provider of models from the file of a project.
  inProject: {
    tools: ({ base }, { cwd }) => ({
      files: [
        {
          path: join(cwd, '.codex', 'config.toml'),
          ofProject: true,
          format: 'toml',
          settings: [
            { at: ['mcp_servers', 'tollgate', 'url'], value: `${base}/mcp` },
            { at: ['mcp_servers', 'tollgate', 'bearer_token_env_var'], value: KEY_VARIABLE },
            { at: ['mcp_servers', 'tollgate', 'http_headers'], value: undefined },
          ],
        },
      ],
      tryIt: 'codex mcp list',
      notes: [KEY_NOTE, 'Codex reads the file only in a project that you trust.'],
    }),
  },
};

/** Most tokens of an answer, for a model that does not say it. */
const ANSWER_TOKENS = 8_192;

const opencode: GatewayClient = {
  name: 'opencode',
  title: 'opencode',
  speaks: 'chat',
  models: (connection, { home, env }) => opencodeModels({ path: opencodeFile(home, env) }, connection),
  tools: (connection, { home, env }) => opencodeTools({ path: opencodeFile(home, env) }, connection),
  inProject: {
    models: (connection, { cwd }) =>
      withNote(opencodeModels({ path: eitherName(cwd), ofProject: true }, { ...connection, key: OPENCODE_KEY })),
    tools: (connection, { cwd }) =>
      withNote(opencodeTools({ path: eitherName(cwd), ofProject: true }, { ...connection, key: OPENCODE_KEY })),
  },
};

const OPENCODE_KEY = `{env:${KEY_VARIABLE}}`;
const withNote = (setup: Setup): Setup => ({ ...setup, notes: [KEY_NOTE] });

function opencodeModels(
  file: Pick<SettingsFile, 'path' | 'ofProject'>,
  { base, key, model, models }: GatewayConnection,
): Setup {
  const known = models.some(({ name }) => name === model);
  const all = known ? models : [...models, { name: model, contextLength: null, maxOutput: null }];
  const listed = all.map(({ name, contextLength, maxOutput }) => {
    const context = contextLength ?? UNKNOWN_CONTEXT;
    return {
      at: ['provider', 'tollgate', 'models', name],
      value: { name, limit: { context, output: maxOutput ?? Math.min(ANSWER_TOKENS, context) } },
      keep: true as const,
    };
  });
  return {
    files: [
      {
        ...file,
        format: 'json',
        settings: [
          { at: ['provider', 'tollgate', 'npm'], value: '@ai-sdk/openai-compatible' },
          { at: ['provider', 'tollgate', 'name'], value: 'tollgate' },
          { at: ['provider', 'tollgate', 'options', 'baseURL'], value: `${base}/api/v1` },
          { at: ['provider', 'tollgate', 'options', 'apiKey'], value: key },
          ...listed,
          { at: ['model'], value: `tollgate/${model}` },
        ],
      },
    ],
    tryIt: 'opencode',
  };
}

const opencodeTools = (file: Pick<SettingsFile, 'path' | 'ofProject'>, connection: GatewayConnection): Setup => ({
  files: [
    {
      ...file,
      format: 'json',
      settings: [...mcpServer('mcp', connection, 'remote'), { at: ['mcp', 'tollgate', 'enabled'], value: true }],
    },
  ],
  tryIt: 'opencode mcp list',
});

const opencodeFile = (home: string, env: Machine['env']): string =>
  eitherName(join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'opencode'));

/** opencode reads both names, so the existing file is changed. */
function eitherName(folder: string): string {
  const path = join(folder, 'opencode.json');
  return existsSync(`${path}c`) ? `${path}c` : path;
}

const cline: GatewayClient = {
  name: 'cline',
  title: 'Cline',
  speaks: 'chat',
  models({ base, key, model }, { home }) {
    const settings = { provider: 'openai-compatible', apiKey: key, model, baseUrl: `${base}/api/v1` };
    return {
      files: [
        {
          path: join(home, '.cline', 'data', 'settings', 'providers.json'),
          format: 'json',
          settings: [
            { at: ['version'], value: 1, keep: true },
            { at: ['lastUsedProvider'], value: 'openai-compatible' },
            { at: ['modes'], value: {}, keep: true },
            ...Object.entries(settings).map(([name, value]) => ({
              at: ['providers', 'openai-compatible', 'settings', name],
              value,
            })),
            { at: ['providers', 'openai-compatible', 'updatedAt'], value: '2026-01-01T00:00:00.000Z', keep: true },
            { at: ['providers', 'openai-compatible', 'tokenSource'], value: 'manual', keep: true },
          ],
        },
      ],
      byHand:
        'In the extension for editors: Settings, API Provider "OpenAI Compatible", then\n' +
        `  Base URL  ${base}/api/v1\n  API Key   ${key}\n  Model ID  ${model}`,
      tryIt: 'cline "Say hello"',
      notes: ['The file is of the command line. The extension keeps its settings in the editor.'],
    };
  },
  tools: ({ base, key }, { home }) => ({
    files: [
      {
        path: join(home, '.cline', 'data', 'settings', 'cline_mcp_settings.json'),
        format: 'json',
        settings: [
          { at: ['mcpServers', 'tollgate', 'transport', 'type'], value: 'streamableHttp' },
          { at: ['mcpServers', 'tollgate', 'transport', 'url'], value: `${base}/mcp` },
          { at: ['mcpServers', 'tollgate', 'transport', 'headers', 'Authorization'], value: bearer(key) },
        ],
      },
    ],
  }),
};

const geminiTools = ({ base, key }: GatewayConnection): readonly Setting[] => [
  { at: ['mcpServers', 'tollgate', 'httpUrl'], value: `${base}/mcp` },
  { at: ['mcpServers', 'tollgate', 'headers', 'Authorization'], value: bearer(key) },
];

/** Gemini CLI asks models of Google for these, whatever its own model is. Without the first a long session ends. */
const GEMINI_HELPERS = ['chat-compression-default', 'gemini-3-flash-base'];

const geminiCli: GatewayClient = {
  name: 'gemini-cli',
  title: 'Gemini CLI',
  speaks: 'gemini',
  models({ base, key, model }, { home }) {
    const variables = { GOOGLE_GEMINI_BASE_URL: `${base}/api`, GEMINI_API_KEY: key, GEMINI_MODEL: model };
    return {
      files: [
        {
          path: join(home, '.gemini', '.env'),
          format: 'dotenv',
          settings: Object.entries(variables).map(([name, value]) => ({ at: [name], value })),
        },
        {
          path: join(home, '.gemini', 'settings.json'),
          format: 'json',
          settings: [
            // Otherwise Gemini CLI asks for a sign-in at Google.
            { at: ['security', 'auth', 'selectedType'], value: 'gemini-api-key' },
            ...GEMINI_HELPERS.map((name) => ({
              at: ['modelConfigs', 'customAliases', name, 'modelConfig', 'model'],
              value: model,
            })),
          ],
        },
      ],
      tryIt: 'gemini --skip-trust --prompt "Say hello"',
      notes: [
        'In a folder that you have not trusted, Gemini CLI reads no .env, not even its own: say that you trust the folder when it asks, or pass --skip-trust.',
        'A .env in the folder of a project, or above it, is read instead of the one in ~/.gemini.',
      ],
    };
  },
  tools: (connection, { home }) => ({
    files: [{ path: join(home, '.gemini', 'settings.json'), format: 'json', settings: geminiTools(connection) }],
    tryIt: 'gemini mcp list',
  }),
  inProject: {
    tools: (connection, { cwd }) => ({
      files: [
        {
          path: join(cwd, '.gemini', 'settings.json'),
          ofProject: true,
          format: 'json',
          settings: geminiTools({ ...connection, key: `\${${KEY_VARIABLE}}` }),
        },
      ],
      tryIt: 'gemini mcp list',
      notes: [KEY_NOTE],
    }),
  },
};

const cursor: GatewayClient = {
  name: 'cursor',
  title: 'Cursor',
  speaks: 'chat',
  models: ({ base, key, model }) => ({
    files: [],
    byHand:
      'In Cursor: Settings, Models, API Keys\n' +
      `  OpenAI API Key            ${key}\n  Override OpenAI Base URL  ${base}/api/v1\n  Add Custom Model          ${model}`,
    notes: ["Cursor's servers call the gateway, not your machine: it needs an address that the internet can reach."],
  }),
  tools: (connection, { home }) => ({
    files: [{ path: join(home, '.cursor', 'mcp.json'), format: 'json', settings: mcpServer('mcpServers', connection) }],
    notes: ['Cursor reads it when it starts. Your machine calls the gateway, so a local address works.'],
  }),
  inProject: {
    tools: (connection, { cwd }) => ({
      files: [
        {
          path: join(cwd, '.cursor', 'mcp.json'),
          ofProject: true,
          format: 'json',
          settings: mcpServer('mcpServers', { ...connection, key: `\${env:${KEY_VARIABLE}}` }),
        },
      ],
      notes: [KEY_NOTE, 'Cursor reads it when it starts.'],
    }),
  },
};

export const CODING_AGENTS: readonly GatewayClient[] = [claudeCode, codex, geminiCli, opencode, cline, cursor];
