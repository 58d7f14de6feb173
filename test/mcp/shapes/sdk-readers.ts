import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { Client } from '@modelcontextprotocol/client';
import type { ListForm } from '../../../src/mcp/shapes/lists.ts';

/** A client of an official SDK. */
export interface SdkReader {
  readonly name: string;
  readonly form: ListForm;
  /** Whether the client reads a result (JSON text) of a method. */
  reads(method: string, result: string): Promise<boolean>;
}

type Message = { readonly id?: string | number; readonly method?: string };

/** The client's side of a connection on which each request gets the result that is set. */
function connection(first: Readonly<Record<string, unknown>>) {
  let result: unknown;
  const transport = {
    onmessage: undefined as ((message: unknown) => void) | undefined,
    onclose: undefined,
    onerror: undefined,
    sessionId: undefined,
    async start() {},
    async close() {},
    async send(message: Message) {
      if (message.id === undefined) return;
      const answer =
        message.method !== undefined && Object.hasOwn(first, message.method)
          ? { result: first[message.method] }
          : message.method === 'server/discover'
            ? { error: { code: -32601, message: 'no' } }
            : { result };
      queueMicrotask(() => transport.onmessage?.({ jsonrpc: '2.0', id: message.id, ...answer }));
    },
  };
  return { transport, set: (text: string) => void (result = JSON.parse(text)) };
}

const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {} };
const INITIALIZED = { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 's', version: '1' } };
const DISCOVERED = {
  supportedVersions: ['2026-07-28'],
  capabilities,
  resultType: 'complete',
  ttlMs: 0,
  cacheScope: 'private',
};

const REQUESTS = {
  'tools/list': (client: Client) => client.listTools(),
  'resources/list': (client: Client) => client.listResources(),
  'resources/templates/list': (client: Client) => client.listResourceTemplates(),
  'prompts/list': (client: Client) => client.listPrompts(),
  'tools/call': (client: Client) => client.callTool({ name: 't', arguments: {} }),
  'resources/read': (client: Client) => client.readResource({ uri: 'test://a' }),
  'prompts/get': (client: Client) => client.getPrompt({ name: 'p' }),
  'completion/complete': (client: Client) =>
    client.complete({ ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }),
} as const;

async function reader(
  name: string,
  form: ListForm,
  client: Client,
  first: Readonly<Record<string, unknown>>,
): Promise<SdkReader> {
  const { transport, set } = connection(first);
  await client.connect(transport as never);
  return {
    name,
    form,
    async reads(method, result) {
      set(result);
      // A client drops some results as no message at all, and then waits for another one.
      const dropped = Promise.withResolvers<boolean>();
      Object.assign(client, { onerror: () => dropped.resolve(false) });
      const read = REQUESTS[method as keyof typeof REQUESTS](client).then(
        () => true,
        () => false,
      );
      return Promise.race([read, dropped.promise]);
    },
  };
}

/** The clients of both SDKs, and the newer one in both eras. */
export async function sdkReaders(): Promise<readonly SdkReader[]> {
  const who = { name: 'c', version: '1' };
  return Promise.all([
    reader('sdk 1', 'legacy', new LegacyClient(who) as unknown as Client, { initialize: INITIALIZED }),
    reader('sdk 2, session', 'legacy', new Client(who), { initialize: INITIALIZED }),
    reader('sdk 2, 2026-07-28', 'modern', new Client(who, { versionNegotiation: { mode: 'auto' } }), {
      'server/discover': DISCOVERED,
    }),
  ]);
}
