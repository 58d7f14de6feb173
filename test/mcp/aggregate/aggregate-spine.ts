import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { onTestFinished } from 'vitest';
import { startSpine, UNHURRIED, type Spine, type SpineOptions } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';

export interface AggregateSpine extends Spine {
  /** The address of the aggregate. */
  readonly mcp: string;
  /** Posts a message to the aggregate, in a session or without. */
  send(message: unknown, session?: string | null, options?: SendOptions): Promise<Response>;
  /** Opens a session; its id. */
  initialize(options?: SendOptions & { readonly capabilities?: object }): Promise<string>;
}

export interface SendOptions {
  readonly key?: string;
  readonly accept?: string;
  /** In place of the aggregate's, with its query. */
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A gateway with services at these addresses, whose lists it knows. `toml` begins among its `[limits]`. Stopped
 * with the test.
 */
export async function startAggregateSpine(
  services: Readonly<Record<string, string>>,
  options: SpineOptions = {},
): Promise<AggregateSpine> {
  const blocks = Object.entries(services).map(([name, url]) => toolToml({ name, url }));
  const spine = await startSpine({ ...options, toml: UNHURRIED + (options.toml ?? '') + blocks.join('') });
  onTestFinished(() => spine.stop());
  const world = withAggregate(spine);
  await world.known(Object.keys(services));
  return world;
}

/** A gateway, and how its aggregate is spoken to. */
export function withAggregate(spine: Spine): AggregateSpine & { known(services: readonly string[]): Promise<void> } {
  const mcp = `${spine.origin}/mcp`;
  const send: AggregateSpine['send'] = (
    message,
    session = null,
    { key = spine.key, accept = BOTH, url = mcp, headers = {} } = {},
  ) =>
    fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept,
        ...(session === null ? {} : { 'mcp-session-id': session }),
        ...headers,
      },
      body: typeof message === 'string' ? message : JSON.stringify(message),
    });
  return {
    ...spine,
    mcp,
    send,
    async initialize(opening = {}) {
      const { capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } } } = opening;
      const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'test', version: '1' } };
      const reply = await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, null, opening);
      const id = reply.headers.get('mcp-session-id');
      if (id === null) throw new Error(`no session: ${reply.status} ${await reply.text()}`);
      await reply.text();
      return id;
    },
    async known(services) {
      // Every service of these tests has a tool.
      const until = performance.now() + 60_000;
      for (const name of services)
        for (;;) {
          const [found] = await messagesOf(
            await send({
              jsonrpc: '2.0',
              id: 1,
              method: 'tools/call',
              params: { name: 'find_tools', arguments: { query: '', services: [name] } },
            }),
          );
          if ((found!['result'] as { structuredContent: { searched: number } }).structuredContent.searched > 0) break;
          if (performance.now() > until) throw new Error(`${name} was not listed within 20 s`);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
    },
  };
}

const BOTH = 'application/json, text/event-stream';
const INFO = { name: 'test', version: '1' };
const CAPABILITIES = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };

/** A connected client of the SDK v1, which has a session; closed with the test. */
export async function connectV1(
  url: string,
  key: string,
  prepare: (client: Client) => void = () => {},
): Promise<Client> {
  const client = new Client(INFO, { capabilities: { ...CAPABILITIES, elicitation: {} } });
  prepare(client);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
  await client.connect(transport);
  onTestFinished(async () => {
    await transport.terminateSession().catch(() => {});
    await client.close();
  });
  return client;
}

/** A connected client of the SDK v2, which speaks the modern revision; closed with the test. */
export async function connectV2(
  url: string,
  key: string,
  prepare: (client: ModernClient) => void = () => {},
): Promise<ModernClient> {
  const client = new ModernClient(INFO, { capabilities: CAPABILITIES });
  prepare(client);
  await client.connect(
    new ModernTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } }),
  );
  onTestFinished(() => client.close());
  return client;
}

export const textOf = (result: unknown): string =>
  (result as { content: readonly { text?: string }[] }).content.map(({ text }) => text).join('\n');

export const call = (id: number | string, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

/** The JSON-RPC messages of a reply, JSON or events. */
export async function messagesOf(reply: Response): Promise<Record<string, unknown>[]> {
  const text = await reply.text();
  if (!reply.headers.get('content-type')?.includes('event-stream'))
    return text === '' ? [] : [JSON.parse(text) as Record<string, unknown>];
  return [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as Record<string, unknown>);
}

export interface MessageStream {
  /** The next message. Rejects at the end of the stream. */
  next(): Promise<Record<string, unknown>>;
  /** Resolves when the stream has ended, with the messages that were left. */
  rest(): Promise<Record<string, unknown>[]>;
  cancel(): Promise<void>;
}

/** The messages of an event stream, one by one as they come. */
export function streamOf(reply: Response): MessageStream {
  if (!reply.headers.get('content-type')?.includes('event-stream')) throw new Error(`no stream: ${reply.status}`);
  const reader = reply.body!.getReader();
  const decoder = new TextDecoder();
  const waiting: Record<string, unknown>[] = [];
  let text = '';
  const read = async (): Promise<boolean> => {
    const { done, value } = await reader.read();
    text += decoder.decode(value, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop()!;
    for (const part of parts) {
      const data = /^data: ?(\{.*)$/m.exec(part)?.[1];
      if (data !== undefined) waiting.push(JSON.parse(data) as Record<string, unknown>);
    }
    return !done;
  };
  return {
    async next() {
      while (waiting.length === 0) if (!(await read())) throw new Error('the stream is over');
      return waiting.shift()!;
    },
    async rest() {
      while (await read());
      return waiting.splice(0);
    },
    cancel: () => reader.cancel(),
  };
}

/** Opens the stream of a session. */
export async function listenTo(
  spine: AggregateSpine,
  session: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(spine.mcp, {
    headers: {
      authorization: `Bearer ${spine.key}`,
      'mcp-session-id': session,
      accept: 'text/event-stream',
      ...headers,
    },
  });
}

/** Looks again and again until it is so. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('it was not so within a minute');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
