import {
  AgentCard,
  type ListTaskPushNotificationConfigsResponse,
  Message,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type Transport,
} from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { type A2ARequestHandler, ServerCallContext } from '@a2a-js/sdk/server';

/*
 * The official SDK's own translation, driven through what it exports: its server of 0.3 over handlers of 1.0, and
 * its client of 0.3 behind an interface of 1.0.
 */

/**
 * 1.0 objects as the SDK's codecs write them: what ProtoJSON leaves out is left out, what the SDK does not know is
 * gone.
 */
export const codec = {
  event: (value: unknown) => StreamResponse.toJSON(StreamResponse.fromJSON(value)),
  task: (value: unknown) => Task.toJSON(Task.fromJSON(value)),
  send: (value: unknown) => SendMessageRequest.toJSON(SendMessageRequest.fromJSON(value)),
  push: (value: unknown) => TaskPushNotificationConfig.toJSON(TaskPushNotificationConfig.fromJSON(value)),
  card: (value: unknown) => AgentCard.toJSON(AgentCard.fromJSON(value)),
};

/** The parameters of a send as the SDK's client takes them. */
export const sdkRequest = (params: unknown): SendMessageRequest => SendMessageRequest.fromJSON(params);

const context = (): ServerCallContext => new ServerCallContext();

const STREAMING = { capabilities: { streaming: true } } as AgentCard;

function serve(handler: Partial<A2ARequestHandler>): LegacyJsonRpcTransportHandler {
  return new LegacyJsonRpcTransportHandler({
    getAgentCard: () => Promise.resolve(STREAMING),
    ...handler,
  } as A2ARequestHandler);
}

async function callLegacy(handler: Partial<A2ARequestHandler>, method: string, params: object): Promise<unknown> {
  const reply: unknown = await serve(handler).handle({ jsonrpc: '2.0', id: 1, method, params }, context());
  const { result, error } = reply as { result?: unknown; error?: unknown };
  if (error !== undefined) throw new Error(JSON.stringify(error));
  return result;
}

/** 1.0 → 0.3 of an event: what the SDK's server of 0.3 streams. */
export async function sdkEventTo03(event: unknown): Promise<unknown> {
  const handler: Partial<A2ARequestHandler> = {
    async *resubscribe() {
      yield await Promise.resolve(StreamResponse.fromJSON(event));
    },
  };
  const stream = await serve(handler).handle(
    { jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id: 'x' } },
    context(),
  );
  for await (const reply of stream as AsyncIterable<{ result: unknown }>) return reply.result;
  throw new Error('the SDK streamed nothing');
}

/** 0.3 → 1.0 of the parameters of a send: what the SDK's server of 0.3 hands to its handler. */
export async function sdkSendTo10(params: object): Promise<unknown> {
  let heard: unknown;
  const sendMessage: A2ARequestHandler['sendMessage'] = (request) => {
    heard = SendMessageRequest.toJSON(request);
    return Promise.resolve(Message.fromJSON({ messageId: 'm', role: 'ROLE_AGENT', parts: [] }));
  };
  await callLegacy({ sendMessage }, 'message/send', params);
  return heard;
}

/** 1.0 → 0.3 of a list of push notification configurations. */
export function sdkPushListTo03(configs: readonly unknown[]): Promise<unknown> {
  const listTaskPushNotificationConfigs = (): Promise<ListTaskPushNotificationConfigsResponse> =>
    Promise.resolve({ configs: configs.map((one) => TaskPushNotificationConfig.fromJSON(one)), nextPageToken: '' });
  return callLegacy({ listTaskPushNotificationConfigs }, 'tasks/pushNotificationConfig/list', { id: 'x' });
}

/** 1.0 → 0.3 of an agent card. */
export function sdkCardTo03(card: unknown): Promise<unknown> {
  const getAuthenticatedExtendedAgentCard = (): Promise<AgentCard> => Promise.resolve(AgentCard.fromJSON(card));
  return callLegacy({ getAuthenticatedExtendedAgentCard }, 'agent/getAuthenticatedExtendedCard', {});
}

/** 0.3 → 1.0 of an agent card: what the SDK's client makes of one that it fetches. */
export async function sdkCardTo10(card: unknown): Promise<unknown> {
  const fetchImpl = () => Promise.resolve(Response.json(card));
  const resolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat: { enabled: true } });
  return AgentCard.toJSON(await resolver.resolve('https://agent.example'));
}

export interface SentRequest {
  readonly verb: string;
  /** Below the interface's URL, with its query. */
  readonly path: string;
  readonly body: unknown;
}

const INTERFACE = 'https://agent.example/a2a';

/**
 * The SDK's client of a version and a binding, and what it sent. Its interface is 1.0's in either version. `reply`
 * gets the id of the JSON-RPC request.
 */
export async function client(
  version: '0.3' | '1.0',
  binding: 'JSONRPC' | 'HTTP+JSON',
  reply: (id: number) => Response,
): Promise<{ readonly transport: Transport; readonly sent: SentRequest[] }> {
  const sent: SentRequest[] = [];
  const fetchImpl: typeof fetch = (url, init) => {
    const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined;
    sent.push({ verb: init?.method ?? 'GET', path: (url as string).slice(INTERFACE.length), body });
    return Promise.resolve(reply((body as { id: number } | undefined)?.id ?? 0));
  };
  const card = AgentCard.fromJSON({
    supportedInterfaces: [{ url: INTERFACE, protocolBinding: binding, protocolVersion: version }],
  });
  const options = { fetchImpl, legacyCompat: { enabled: true } };
  const factory = binding === 'JSONRPC' ? new JsonRpcTransportFactory(options) : new RestTransportFactory(options);
  return { transport: await factory.create(INTERFACE, card), sent };
}

/** The parameters of a request over JSON-RPC. */
export const paramsOf = ({ body }: SentRequest): unknown => (body as { params: unknown }).params;

/** 1.0 → 0.3 of the parameters of a send: what the SDK's client sends to an agent of 0.3. */
export async function sdkSendTo03(params: unknown): Promise<unknown> {
  const result = { kind: 'message', messageId: 'm', role: 'agent', parts: [] };
  const { transport, sent } = await client('0.3', 'JSONRPC', (id) => Response.json({ jsonrpc: '2.0', id, result }));
  await transport.sendMessage(SendMessageRequest.fromJSON(params));
  return paramsOf(sent[0]!);
}

/** 0.3 → 1.0 of the result of a send, wrapped as 1.0 wraps it. */
export async function sdkSentTo10(result: unknown): Promise<unknown> {
  const { transport } = await client('0.3', 'JSONRPC', (id) => Response.json({ jsonrpc: '2.0', id, result }));
  const found = await transport.sendMessage(
    SendMessageRequest.fromJSON({ message: { messageId: 'm', role: 'ROLE_USER', parts: [] } }),
  );
  const payload =
    'messageId' in found ? ({ $case: 'message', value: found } as const) : ({ $case: 'task', value: found } as const);
  return SendMessageResponse.toJSON({ payload });
}
