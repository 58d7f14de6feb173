import { AgentCard, StreamResponse, Task, TaskPushNotificationConfig } from '@a2a-js/sdk';
import type { Transport } from '@a2a-js/sdk/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { A2aOperation } from '../../../src/a2a/wire/protocol.ts';
import { legacyRestParams, legacyRestResult } from '../../../src/a2a/wire/rest-legacy.ts';
import { matchRest } from '../../../src/a2a/wire/rest.ts';
import { translateResult } from '../../../src/a2a/wire/translate.ts';
import { versions } from './support/arbitraries.ts';
import { client, codec, paramsOf, sdkRequest, type SentRequest } from './support/sdk-translation.ts';

const VALID = versions({ extras: false })['1.0'];
/** Without data that is no object: the mark by which 0.3 knows it stands in the metadata that the SDK drops. */
const representable = (value: unknown): boolean => !/"data":[^{]/.test(JSON.stringify(value));
const runs = { numRuns: 100 };

/**
 * What the SDK's conversion from and to 0.3's proto drops, in a part, an artifact or an update of one. Ours keeps it.
 */
const DROPPED = new Set(['metadata', 'filename', 'name', 'referenceTaskIds', 'extensions', 'append', 'lastChunk']);

function withoutDropped(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (name, member: unknown) => (DROPPED.has(name) ? undefined : member)),
  ) as unknown;
}

async function sentBy(
  binding: 'JSONRPC' | 'HTTP+JSON',
  call: (transport: Transport) => Promise<unknown>,
): Promise<SentRequest> {
  const { transport, sent } = await client('0.3', binding, () => new Response('', { status: 500 }));
  await call(transport).catch(() => null);
  return sent[0]!;
}

function read({ verb, path, body }: SentRequest): [A2aOperation, unknown] {
  const url = new URL(`https://a.example${path}`);
  const match = matchRest('0.3', verb, url.pathname);
  if (!('operation' in match)) throw new Error(`no route for ${verb} ${path}`);
  return [match.operation, legacyRestParams(match, { query: Object.fromEntries(url.searchParams), body })];
}

/** What the official client makes of a result that is written for 0.3's HTTP+JSON. */
async function understood<T>(
  operation: A2aOperation,
  result: unknown,
  call: (transport: Transport) => Promise<T>,
): Promise<T> {
  const body = JSON.stringify(legacyRestResult(operation, translateResult(operation, '1.0', '0.3', result)));
  const streams = operation === 'stream';
  const headers = { 'content-type': streams ? 'text/event-stream' : 'application/json' };
  const { transport } = await client(
    '0.3',
    'HTTP+JSON',
    () => new Response(streams ? `data: ${body}\n\n` : body, { headers }),
  );
  return call(transport);
}

const calls: readonly (readonly [A2aOperation, (transport: Transport) => Promise<unknown>])[] = [
  ['get', (transport) => transport.getTask({ tenant: '', id: 't/1', historyLength: 3 })],
  ['cancel', (transport) => transport.cancelTask({ tenant: '', id: 't/1', metadata: undefined })],
  ['subscribe', (transport) => transport.resubscribeTask({ tenant: '', id: 't' }).next()],
  [
    'push-set',
    (transport) =>
      transport.createTaskPushNotificationConfig(
        TaskPushNotificationConfig.fromJSON({ taskId: 't', id: 'c', url: 'u' }),
      ),
  ],
  ['push-get', (transport) => transport.getTaskPushNotificationConfig({ tenant: '', taskId: 't', id: 'c' })],
  ['push-delete', (transport) => transport.deleteTaskPushNotificationConfig({ tenant: '', taskId: 't', id: 'c' })],
  [
    'push-list',
    (transport) => transport.listTaskPushNotificationConfig({ tenant: '', taskId: 't', pageSize: 0, pageToken: '' }),
  ],
];

describe('the HTTP+JSON binding of 0.3, with the official client', () => {
  it.each(calls)('%s has the parameters of its JSON-RPC request', async (operation, call) => {
    expect(read(await sentBy('HTTP+JSON', call))).toEqual([operation, paramsOf(await sentBy('JSONRPC', call))]);
  });

  it('so has a send', () =>
    fc.assert(
      fc.asyncProperty(VALID.send.filter(representable), async (params) => {
        const call = (transport: Transport) => transport.sendMessage(sdkRequest(params));
        const [operation, ours] = read(await sentBy('HTTP+JSON', call));
        const theirs = paramsOf(await sentBy('JSONRPC', call)) as { configuration: Record<string, unknown> };
        const { acceptedOutputModes = [], historyLength, ...configuration } = theirs.configuration;
        const sent = ours as typeof theirs;
        // ProtoJSON leaves out what is empty.
        expect([
          operation,
          withoutDropped({
            ...sent,
            configuration: { acceptedOutputModes: [], historyLength: 0, ...sent.configuration },
          }),
        ]).toEqual([
          'send',
          withoutDropped({
            ...theirs,
            configuration: { acceptedOutputModes, historyLength: historyLength ?? 0, ...configuration },
          }),
        ]);
      }),
      runs,
    ));

  it('understands a task', () =>
    fc.assert(
      fc.asyncProperty(VALID.task.filter(representable), async (task) => {
        const found = await understood('get', task, (transport) => transport.getTask({ tenant: '', id: 't' }));
        expect(withoutDropped(Task.toJSON(found))).toEqual(withoutDropped(codec.task(task)));
      }),
      runs,
    ));

  it('understands events', () =>
    fc.assert(
      fc.asyncProperty(VALID.event.filter(representable), async (event) => {
        const found = await understood('stream', event, (transport) =>
          transport.sendMessageStream(sdkRequest({ message: { messageId: 'm', parts: [] } })).next(),
        );
        expect(withoutDropped(StreamResponse.toJSON(found.value as StreamResponse))).toEqual(
          withoutDropped(codec.event(event)),
        );
      }),
      runs,
    ));

  it('understands configurations', async () => {
    const config = {
      taskId: 't',
      id: 'c',
      url: 'https://a.example',
      token: 's',
      authentication: { scheme: 'Bearer', credentials: 'x' },
    };
    const call = (transport: Transport) =>
      transport.getTaskPushNotificationConfig({ tenant: '', taskId: 't', id: 'c' });
    expect(TaskPushNotificationConfig.toJSON(await understood('push-get', config, call))).toEqual(config);
    const list = (transport: Transport) =>
      transport.listTaskPushNotificationConfig({ tenant: '', taskId: 't', pageSize: 0, pageToken: '' });
    expect(
      (await understood('push-list', { configs: [config] }, list)).configs.map((one) =>
        TaskPushNotificationConfig.toJSON(one),
      ),
    ).toEqual([config]);
  });

  it('understands a card', async () => {
    const card = {
      name: 'a',
      description: 'b',
      version: '1',
      supportedInterfaces: [{ url: 'https://a.example', protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' }],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [
        {
          id: 's',
          name: 's',
          description: 's',
          tags: ['t'],
          securityRequirements: [{ schemes: { key: { list: [] } } }],
        },
      ],
      securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } } },
      securityRequirements: [{ schemes: { key: { list: ['read'] } } }],
    };
    const found = await understood('card', card, (transport) => transport.getExtendedAgentCard({ tenant: '' }));
    expect(AgentCard.toJSON(found)).toEqual(codec.card(card));
  });

  it.each([
    ['send', undefined, {}, 'the body must be a JSON object'],
    ['push-set', null, {}, 'the body must be a JSON object'],
    ['get', undefined, { historyLength: '-1' }, 'historyLength must be a whole number, once'],
  ] as const)('%s with body %j and query %j is refused', (operation, body, query, fault) => {
    expect(legacyRestParams({ operation, ids: { id: 't' } }, { body, query })).toBe(fault);
  });

  it('parts as the prose of the specification has them are taken as well', () => {
    const message = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'a' }] };
    expect(legacyRestParams({ operation: 'send', ids: {} }, { body: { message } })).toEqual({
      message: { kind: 'message', ...message },
    });
  });
});
