/** A client that takes the address alone, as docs/clients has it. */
interface ClientSteps {
  readonly id: string;
  readonly name: string;
  /** The acts of the person, in order. The last one needs `code`. */
  readonly steps: readonly string[];
  /** Commands or a file, with the address; null if the address alone is pasted. */
  readonly code: ((address: string) => string) | null;
  /** Whether its servers call, so that the gateway needs an address on the internet. */
  readonly isHosted: boolean;
}

const CLIENTS: readonly ClientSteps[] = [
  {
    id: 'claude',
    name: 'Claude',
    steps: ['In its settings, open Connectors and choose Add custom connector.', 'Paste this address, and connect.'],
    code: null,
    isHosted: true,
  },
  {
    id: 'chatgpt',
    name: 'ChatGPT',
    steps: [
      'In its settings, open Apps, and turn developer mode on under Advanced.',
      'Create an app with this address, and choose OAuth.',
    ],
    code: null,
    isHosted: true,
  },
  {
    id: 'claude-code',
    name: 'Claude Code',
    steps: ['Run this in a terminal.'],
    // One line: the first command would swallow a second one that is pasted with it.
    code: (address) => `claude mcp add --transport http tollgate ${address} && claude mcp login tollgate`,
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
    name: 'Claude Desktop',
    steps: [
      'Put this into its file claude_desktop_config.json, and start it again. Other clients that can only start programs take the same.',
    ],
    code: (address) =>
      JSON.stringify({ mcpServers: { tollgate: { command: 'npx', args: ['-y', 'mcp-remote', address] } } }, null, 2),
    isHosted: false,
  },
  {
    id: 'other',
    name: 'Another assistant',
    steps: ['Give it this address, with Streamable HTTP and OAuth, and no key.'],
    code: null,
    isHosted: false,
  },
];

const isLocal = (address: string): boolean => {
  const name = URL.parse(address)?.hostname ?? '';
  return name === 'localhost' || name === '[::1]' || name.startsWith('127.');
};

interface OfferedClient extends ClientSteps {
  /** Whether it can call this address. */
  readonly reaches: boolean;
}

export const clientsFor = (address: string): readonly OfferedClient[] =>
  CLIENTS.map((client) => ({ ...client, reaches: !client.isHosted || !isLocal(address) }));
