/** A client that takes the address alone, as docs/clients has it. */
interface ClientSteps {
  readonly id: string;
  readonly name: string;
  /** Steps of a person, in order. */
  readonly steps: readonly string[];
  /** Commands or a file, with the address; null if the address alone is pasted. */
  readonly code: ((address: string) => string) | null;
  /** Whether its servers call, so that the gateway needs an address on the internet. */
  readonly isHosted: boolean;
}

export const CLIENTS: readonly ClientSteps[] = [
  {
    id: 'claude',
    name: 'Claude',
    steps: ['In its settings, open Connectors and choose Add custom connector.', 'Paste the address, and connect.'],
    code: null,
    isHosted: true,
  },
  {
    id: 'chatgpt',
    name: 'ChatGPT',
    steps: [
      'In its settings, open Apps, and turn developer mode on under Advanced.',
      'Create an app with the address, and choose OAuth.',
    ],
    code: null,
    isHosted: true,
  },
  {
    id: 'claude-code',
    name: 'Claude Code',
    steps: ['Run this in a terminal.'],
    code: (address) => `claude mcp add --transport http tollgate ${address}\nclaude mcp login tollgate`,
    isHosted: false,
  },
  {
    id: 'codex',
    name: 'Codex',
    steps: ['Run this in a terminal.'],
    code: (address) => `codex mcp add tollgate --url ${address}`,
    isHosted: false,
  },
  {
    id: 'vscode',
    name: 'VS Code',
    steps: ['Put this into .vscode/mcp.json of a project, and start the server there.'],
    code: (address) => JSON.stringify({ servers: { tollgate: { type: 'http', url: address } } }, null, 2),
    isHosted: false,
  },
  {
    id: 'desktop',
    name: 'Programs by command',
    steps: ['A client that can only start programs, such as Claude Desktop by its file, takes this as its server.'],
    code: (address) =>
      JSON.stringify({ mcpServers: { tollgate: { command: 'npx', args: ['-y', 'mcp-remote', address] } } }, null, 2),
    isHosted: false,
  },
  {
    id: 'other',
    name: 'Another',
    steps: ['Give any MCP client the address, with Streamable HTTP and OAuth, and no key.'],
    code: null,
    isHosted: false,
  },
];
