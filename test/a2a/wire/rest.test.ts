import { SendMessageRequest, TaskPushNotificationConfig, TaskState } from '@a2a-js/sdk';
import type { Transport } from '@a2a-js/sdk/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { A2aOperation } from '../../../src/a2a/wire/protocol.ts';
import { restParams, restRequest, matchRest, REST_ROUTES, type RestMatch } from '../../../src/a2a/wire/rest.ts';
import { versions } from './support/arbitraries.ts';
import { client, paramsOf, type SentRequest } from './support/sdk-translation.ts';

const ID = 'task/1:cancel ü';
const send = SendMessageRequest.fromJSON({
  message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }] },
  metadata: { a: 1 },
});
const push = TaskPushNotificationConfig.fromJSON({ taskId: ID, id: 'c/1', url: 'https://a.example', tenant: 'acme' });
const list = {
  tenant: 'acme',
  contextId: 'c',
  status: TaskState.TASK_STATE_INPUT_REQUIRED,
  pageSize: 5,
  pageToken: 'p',
  historyLength: 0,
  statusTimestampAfter: '2026-01-01T00:00:00Z',
  includeArtifacts: true,
};

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _event of stream);
}

const CALLS: readonly (readonly [A2aOperation, (transport: Transport) => Promise<unknown>])[] = [
  ['send', (transport) => transport.sendMessage(send)],
  ['stream', (transport) => drain(transport.sendMessageStream({ ...send, tenant: 'acme' }))],
  ['get', (transport) => transport.getTask({ tenant: 'acme', id: ID, historyLength: 3 })],
  ['get', (transport) => transport.getTask({ tenant: '', id: ID })],
  ['list', (transport) => transport.listTasks(list)],
  ['cancel', (transport) => transport.cancelTask({ tenant: '', id: ID, metadata: undefined })],
  ['subscribe', (transport) => drain(transport.resubscribeTask({ tenant: 'acme', id: ID }))],
  ['push-set', (transport) => transport.createTaskPushNotificationConfig(push)],
  ['push-get', (transport) => transport.getTaskPushNotificationConfig({ tenant: '', taskId: ID, id: 'c/1' })],
  [
    'push-list',
    (transport) => transport.listTaskPushNotificationConfig({ tenant: '', taskId: ID, pageSize: 0, pageToken: '' }),
  ],
  ['push-delete', (transport) => transport.deleteTaskPushNotificationConfig({ tenant: 'acme', taskId: ID, id: 'c/1' })],
  ['card', (transport) => transport.getExtendedAgentCard({ tenant: 'acme' })],
];

/** What the SDK's client of 1.0 sends for a call, whatever it makes of the reply. */
async function sentBy(
  binding: 'JSONRPC' | 'HTTP+JSON',
  call: (transport: Transport) => Promise<unknown>,
): Promise<SentRequest> {
  const { transport, sent } = await client('1.0', binding, () => new Response('', { status: 500 }));
  await call(transport).catch(() => null);
  return sent[0]!;
}

function read({
  verb,
  path,
  body,
}: Pick<SentRequest, 'verb' | 'path'> & { readonly body?: unknown }): [A2aOperation, unknown] {
  const url = new URL(`https://a.example${path}`);
  const match = matchRest('1.0', verb, url.pathname);
  if (!('operation' in match)) throw new Error(`no route for ${verb} ${path}`);
  return [match.operation, restParams(match, { query: Object.fromEntries(url.searchParams), body })];
}

describe('the HTTP+JSON binding of 1.0', () => {
  it.each(CALLS)('%s of the official client has the parameters of its JSON-RPC request', async (operation, call) => {
    const params = paramsOf(await sentBy('JSONRPC', call));
    expect(read(await sentBy('HTTP+JSON', call))).toEqual([operation, params ?? {}]);
  });

  it.each(CALLS)('%s is sent as the official client sends it', async (operation, call) => {
    const params = (paramsOf(await sentBy('JSONRPC', call)) ?? {}) as Record<string, unknown>;
    const request = restRequest(operation, params);
    if (typeof request === 'string') throw new Error(request);
    const theirs = await sentBy('HTTP+JSON', call);
    expect(request).toMatchObject({ verb: theirs.verb, path: theirs.path });
    expect(read(request)).toEqual([operation, params]);
  });

  it('any parameters come through it as they are', () => {
    const id = fc
      .string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
      .filter((one) => one !== '.' && one !== '..');
    fc.assert(
      fc.property(
        id,
        id,
        id,
        fc.nat(100),
        versions({ extras: true })['1.0'].send,
        (one, two, tenant, historyLength, message) => {
          const cases: [A2aOperation, Record<string, unknown>][] = [
            ['send', { ...message, tenant }],
            ['get', { id: one, tenant, historyLength }],
            ['cancel', { id: one, metadata: { a: 1 } }],
            ['subscribe', { id: one }],
            ['push-delete', { taskId: one, id: two, tenant }],
          ];
          for (const [operation, params] of cases) {
            const request = restRequest(operation, params);
            if (typeof request === 'string') throw new Error(request);
            expect(read(request)).toEqual([operation, params]);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("the path's ids count, whatever the body says", () => {
    const match: RestMatch = { operation: 'push-set', ids: { tenant: 'acme', id: 't' } };
    expect(restParams(match, { body: { taskId: 'other', tenant: 'other', url: 'u' } })).toEqual({
      taskId: 't',
      tenant: 'acme',
      url: 'u',
    });
  });

  it.each([
    ['get', { historyLength: 'x' }, 'historyLength must be a whole number, once'],
    ['get', { historyLength: ['1', '2'] }, 'historyLength must be a whole number, once'],
    ['list', { includeArtifacts: 'yes' }, 'includeArtifacts must be true or false, once'],
    ['list', { status: 'dreaming' }, 'status must be a state such as TASK_STATE_WORKING, once'],
  ] as const)('%s %j is refused', (operation, query, fault) => {
    expect(restParams({ operation, ids: { id: 't' } }, { query })).toBe(fault);
  });

  it('a body that is no object is refused, and ignored where there is to be none', () => {
    expect(restParams({ operation: 'send', ids: {} }, { body: [] })).toBe('the body must be a JSON object');
    expect(restParams({ operation: 'get', ids: { id: 't' } }, { body: [] })).toEqual({ id: 't' });
    expect(restParams({ operation: 'cancel', ids: { id: 't' } }, { body: null })).toEqual({ id: 't' });
    expect(restParams({ operation: 'list', ids: {} }, { query: { status: 'working', pageSize: '' } })).toEqual({
      status: 'TASK_STATE_WORKING',
    });
  });

  it('an id that is missing is named', () => {
    expect([
      restRequest('get', {}),
      restRequest('push-get', { taskId: 't' }),
      restRequest('cancel', { id: '..' }),
    ]).toEqual([
      'id must be a string that is not empty',
      'id must be a string that is not empty',
      'id must be a string that is not empty',
    ]);
  });

  it('a verb that the path has not is told from a path that is none', () => {
    expect(matchRest('1.0', 'GET', '/message:send')).toEqual({ allowed: ['POST'] });
    expect(matchRest('1.0', 'DELETE', '/tasks/t:subscribe')).toEqual({ allowed: ['POST', 'GET'] });
    for (const path of [
      '/',
      '',
      '/messages:send',
      '/a/b/message:send',
      '/tasks/%zz',
      `/tasks/${'x'.repeat(5_000)}`,
      '/v1/card',
    ]) {
      expect(matchRest('1.0', 'POST', path)).toEqual({ allowed: [] });
    }
  });

  it('0.3 has the same below /v1, without lists and tenants', () => {
    expect(matchRest('0.3', 'POST', '/v1/message:send')).toEqual({ operation: 'send', ids: {} });
    expect(matchRest('0.3', 'GET', '/v1/card')).toEqual({ operation: 'card', ids: {} });
    expect(matchRest('0.3', 'GET', '/v1/tasks')).toEqual({ allowed: [] });
    expect(matchRest('0.3', 'POST', '/acme/v1/message:send')).toEqual({ allowed: [] });
    expect(REST_ROUTES['0.3']).toHaveLength(REST_ROUTES['1.0'].length - 1);
  });
});
