import { Client, SdkError, SdkErrorCode, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { toolBlock } from './tool-block.ts';

/*
 * The client that the conformance tool runs against a server of its own: `--command "node <this file>"`, with the
 * server's URL as the last argument. It starts a gateway in front of that server and drives it, so the tool judges
 * what the gateway sends. With TOLLGATE_DIRECT=1 it talks to the server itself, which shows that it does all that
 * the scenarios want.
 */
const url = process.argv.at(-1) ?? '';
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const version = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'] ?? '2026-07-28';
const given = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  readonly toolCalls?: readonly ToolCall[];
};

interface ToolCall {
  readonly name: string;
  readonly arguments?: Record<string, unknown>;
}

/** What a scenario wants done with a client that is connected. */
type Play = (client: Client) => Promise<void>;

const list: Play = async (client) => void (await client.listTools());

const callEach =
  (...calls: readonly ToolCall[]): Play =>
  async (client) => {
    await client.listTools();
    for (const call of calls) await client.callTool({ name: call.name, arguments: call.arguments ?? {} });
  };

const PLAYS: Readonly<Record<string, Play>> = {
  initialize: list,
  'request-metadata': list,
  'json-schema-ref-no-deref': list,
  tools_call: callEach({ name: 'add_numbers', arguments: { a: 5, b: 3 } }),
  'sse-retry': callEach({ name: 'test_reconnection' }),
  'elicitation-sep1034-client-defaults': async (client) => {
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
    await callEach({ name: 'test_client_elicitation_defaults' })(client);
  },
  'http-custom-headers': callEach(...(given.toolCalls ?? [])),

  async 'http-standard-headers'(client) {
    await callEach({ name: 'test_headers' }, { name: 'my-hyphenated-tool' })(client);
    for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri });
    for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name });
  },

  // The SDK leaves tools with bad headers out of the list; what is left must work.
  async 'http-invalid-tool-headers'(client) {
    for (const { name } of (await client.listTools()).tools)
      await client.callTool({ name, arguments: { region: 'eu' } });
  },

  async 'sep-2322-client-request-state'(client) {
    client.setRequestHandler('elicitation/create', async () => {
      // Between two rounds of another call: nothing of that call may come along.
      await client.callTool({ name: 'test_mrtr_unrelated', arguments: {} });
      return { action: 'accept', content: { confirmed: true } };
    });
    await callEach({ name: 'test_mrtr_echo_state' }, { name: 'test_mrtr_no_state' })(client);
    // The SDK refuses a result without its type; the scenario only asks that nobody takes it for a question.
    await client.callTool({ name: 'test_mrtr_no_result_type', arguments: {} }).catch((error: unknown) => {
      if (!(error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)) throw error;
    });
  },

  async 'json-schema-2020-12-preservation'(client) {
    const { tools } = await client.listTools();
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema;
    await client.callTool({ name: 'json_schema_echo', arguments: { schema } });
  },
};

async function play(at: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const run = PLAYS[scenario];
  if (!run) throw new Error(`this client does not know the scenario ${scenario}`);
  const client = new Client(
    { name: 'tollgate-conformance-client', version: '1.0.0' },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
      versionNegotiation: { mode: version === '2026-07-28' ? 'auto' : 'legacy' },
    },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(at), { requestInit: { headers } }));
  try {
    if (client.getNegotiatedProtocolVersion() !== version)
      throw new Error(`speaks ${client.getNegotiatedProtocolVersion()}, not ${version}`);
    await run(client);
  } finally {
    await client.close();
  }
}

async function playThroughTheGateway(): Promise<void> {
  // Not loaded where no gateway is wanted: it is most of what this program takes to start.
  const { startSpine, UNHURRIED } = await import('../../support/spine.ts');
  const spine = await startSpine({ toml: UNHURRIED + toolBlock('upstream', url) });
  try {
    await play(`${spine.origin}/mcp/upstream`, { authorization: `Bearer ${spine.key}` });
    const faults = await spine.faults();
    if (faults.length > 0) throw new Error(`the audit finds ${JSON.stringify(faults)}`);
  } finally {
    await spine.stop();
  }
}

await (process.env['TOLLGATE_DIRECT'] === '1' ? play(url, {}) : playThroughTheGateway());
