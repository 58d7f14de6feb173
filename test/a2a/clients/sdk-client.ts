import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Message, type SendMessageRequest, type StreamResponse, type Task } from '@a2a-js/sdk';
import {
  Client,
  ClientFactory,
  ClientFactoryOptions,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport, parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';

/** How a client of `@a2a-js/sdk` is set up. */
export type ClientKind = '1.0 over JSON-RPC' | '1.0 over HTTP+JSON' | '0.3 over JSON-RPC';

export const CLIENT_KINDS: readonly ClientKind[] = ['1.0 over JSON-RPC', '1.0 over HTTP+JSON', '0.3 over JSON-RPC'];

/** The SDK's hook for credentials: asked before every request. */
export const fetchWithKey = (key: string): typeof fetch =>
  createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ authorization: `Bearer ${key}` }),
    shouldRetryWithHeaders: async () => undefined,
  });

/** Connects as an SDK's user would: by the address of the service alone. The card says the rest. */
export async function connect(kind: ClientKind, url: string, key: string): Promise<Client> {
  const fetchImpl = fetchWithKey(key);
  if (kind === '0.3 over JSON-RPC') {
    // A client of that time names no version.
    const response = await fetchImpl(`${url}/.well-known/agent-card.json`);
    const card = parseLegacyAgentCard(await response.json());
    const endpoint = card.supportedInterfaces.find(({ protocolBinding }) => protocolBinding === 'JSONRPC')!.url;
    return new Client(new LegacyJsonRpcTransport({ endpoint, fetchImpl }), card);
  }
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
      preferredTransports: [kind === '1.0 over JSON-RPC' ? 'JSONRPC' : 'HTTP+JSON'],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }),
  );
  return factory.createFromUrl(`${url}/`);
}

export interface Asked {
  readonly taskId?: string;
  readonly contextId?: string;
  /** Does not wait for the end of the task. */
  readonly immediately?: boolean;
}

/** A request of the SDK with one text. */
export function saying(
  text: string,
  { taskId = '', contextId = '', immediately = false }: Asked = {},
): SendMessageRequest {
  const part = { content: { $case: 'text', value: text } as const, metadata: undefined, filename: '', mediaType: '' };
  const message = {
    messageId: randomUUID(),
    contextId,
    taskId,
    role: Role.ROLE_USER,
    parts: [part],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  const configuration = {
    acceptedOutputModes: [],
    taskPushNotificationConfig: undefined,
    historyLength: undefined,
    returnImmediately: immediately,
  };
  return { tenant: '', message, configuration, metadata: undefined };
}

export const isTask = (answer: Message | Task): answer is Task => 'status' in answer;

export async function sendForTask(client: Client, text: string, asked?: Asked): Promise<Task> {
  const answer = await client.sendMessage(saying(text, asked));
  if (!isTask(answer)) throw new Error(`a task should have come: ${JSON.stringify(answer)}`);
  return answer;
}

export const stateName = (task: Task): string => TaskState[task.status?.state ?? 0]!;

export const textOf = (message: Pick<Message, 'parts'> | undefined): string =>
  (message?.parts ?? []).map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

/** Reads a stream to its end. */
export async function collect(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const all: StreamResponse[] = [];
  for await (const event of stream) all.push(event);
  return all;
}
