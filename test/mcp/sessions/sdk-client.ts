import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { onTestFinished } from 'vitest';

/** A connected client of the v1 SDK, closed with the test. */
export async function connect(
  url: string,
  account: string,
  prepare: (client: Client) => void = () => {},
  options: StreamableHTTPClientTransportOptions = {},
): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } },
  );
  prepare(client);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    ...options,
    requestInit: { headers: { authorization: `Bearer ${account}` } },
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, transport };
}

export async function textOf(result: unknown): Promise<string> {
  const { content } = (await result) as { readonly content: readonly { readonly text: string }[] };
  return content[0]!.text;
}
