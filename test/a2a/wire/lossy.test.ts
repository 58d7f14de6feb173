import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { methodOf } from '../../../src/a2a/wire/protocol.ts';
import { translateError } from '../../../src/a2a/wire/errors.ts';
import { translateParams, translateEvent, translateResult } from '../../../src/a2a/wire/translate.ts';

const page = readFileSync(new URL('../../../docs/reference/mappings-a2a.md', import.meta.url), 'utf8');
const section = page.slice(page.indexOf('## Lossy mappings')).split('\n## ')[0]!;
const rows = section.split('\n').flatMap((line) => /^\| ([a-z][^|]*) \| (?:0\.3|1\.0|both) \|/.exec(line)?.[1] ?? []);

const to10 = (event: unknown): unknown => translateEvent('0.3', '1.0', event);
const to03 = (event: unknown): unknown => translateEvent('1.0', '0.3', event);
const cardTo10 = (card: unknown) => translateResult('card', '0.3', '1.0', card) as Record<string, unknown>;
const cardTo03 = (card: unknown) => translateResult('card', '1.0', '0.3', card) as Record<string, unknown>;
const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [] };
const partsTo03 = (...parts: unknown[]): unknown =>
  (to03({ message: { ...message, parts } }) as { parts: unknown }).parts;
const partsTo10 = (...parts: unknown[]): unknown =>
  (to10({ kind: 'message', messageId: 'm', role: 'agent', parts }) as { message: { parts: unknown } }).message.parts;

const CASES: Readonly<Record<string, () => void>> = {
  final: () => {
    const update = { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working' }, final: true };
    expect(to10(update)).toEqual({
      statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } },
    });
    const finals = [
      'WORKING',
      'SUBMITTED',
      'UNSPECIFIED',
      'INPUT_REQUIRED',
      'AUTH_REQUIRED',
      'COMPLETED',
      'FAILED',
      'CANCELED',
      'REJECTED',
    ].map(
      (state) =>
        (
          to03({ statusUpdate: { taskId: 't', contextId: 'c', status: { state: `TASK_STATE_${state}` } } }) as {
            final: boolean;
          }
        ).final,
    );
    expect(finals).toEqual([false, false, false, true, true, true, true, true, true]);
  },
  'unknown state': () => {
    expect(to10({ kind: 'task', id: 't', contextId: 'c', status: { state: 'dreaming' } })).toEqual({
      task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_UNSPECIFIED' } },
    });
    expect(to03({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_DREAMING' } } })).toMatchObject({
      status: { state: 'unknown' },
    });
  },
  'enum numbers': () => {
    const task = { id: 't', contextId: 'c', status: { state: 6, message: { ...message, role: 1 } } };
    expect(to03({ task })).toMatchObject({ status: { state: 'input-required', message: { role: 'user' } } });
    expect(to10(to03({ task }))).toMatchObject({
      task: { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_USER' } } },
    });
  },
  'no role': () => {
    expect(to03({ message: { ...message, role: 'ROLE_UNSPECIFIED' } })).toMatchObject({ role: 'agent' });
    expect(to03({ message: { messageId: 'm', parts: [] } })).toMatchObject({ role: 'agent' });
  },
  'required by 0.3': () => {
    expect(to03({ task: { id: 't' } })).toEqual({ kind: 'task', id: 't', contextId: '', status: { state: 'unknown' } });
    expect(to03({ message: { messageId: 'm', role: 'ROLE_AGENT' } })).toEqual({
      kind: 'message',
      messageId: 'm',
      role: 'agent',
      parts: [],
    });
    expect(to03({ artifactUpdate: { taskId: 't', artifact: { artifactId: 'a' } } })).toMatchObject({
      contextId: '',
      artifact: { parts: [] },
    });
  },
  wrapper: () => {
    expect(to03({ message, beside: 1 })).toEqual({ kind: 'message', messageId: 'm', role: 'agent', parts: [] });
  },
  'two contents': () => {
    expect(partsTo03({ text: 'a', url: 'https://a.example', data: {} })).toEqual([{ kind: 'text', text: 'a' }]);
    expect(partsTo03({ raw: 'YQ==', url: 'https://a.example' })).toEqual([{ kind: 'file', file: { bytes: 'YQ==' } }]);
  },
  'file members': () => {
    const file = { bytes: 'YQ==', uri: 'https://a.example', name: 'a.txt', size: 1 };
    expect(partsTo10({ kind: 'file', file })).toEqual([{ raw: 'YQ==', filename: 'a.txt' }]);
  },
  'empty description': () => {
    expect(partsTo03({ url: 'https://a.example', filename: '', mediaType: '' })).toEqual([
      { kind: 'file', file: { uri: 'https://a.example' } },
    ]);
  },
  'wrapped data': () => {
    const wrapped = partsTo03({ data: [1], metadata: {} }, { data: null, metadata: { a: 1 } }) as unknown[];
    expect(wrapped).toEqual([
      { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
      { kind: 'data', data: { value: null }, metadata: { a: 1, data_part_compat: true } },
    ]);
    expect(partsTo10(...wrapped)).toEqual([{ data: [1] }, { data: null, metadata: { a: 1 } }]);
  },
  blocking: () => {
    expect(translateParams('send', '1.0', '0.3', { message })).toMatchObject({ configuration: { blocking: true } });
    expect(translateParams('send', '1.0', '0.3', { message, configuration: { historyLength: 1 } })).toMatchObject({
      configuration: { blocking: true, historyLength: 1 },
    });
    expect(translateParams('send', '0.3', '1.0', { message, configuration: {} })).toMatchObject({ configuration: {} });
    expect(translateParams('send', '0.3', '1.0', { message })).not.toHaveProperty('configuration');
  },
  'metadata of requests': () => {
    for (const operation of ['get', 'subscribe'] as const) {
      expect(translateParams(operation, '0.3', '1.0', { id: 't', metadata: { a: 1 } })).toEqual({ id: 't' });
    }
    for (const operation of ['push-get', 'push-list', 'push-delete'] as const) {
      expect(translateParams(operation, '0.3', '1.0', { id: 't', metadata: { a: 1 } })).toEqual({ taskId: 't' });
    }
    expect(translateParams('cancel', '0.3', '1.0', { id: 't', metadata: { a: 1 } })).toEqual({
      id: 't',
      metadata: { a: 1 },
    });
  },
  tenant: () => {
    for (const operation of [
      'send',
      'stream',
      'get',
      'cancel',
      'subscribe',
      'push-get',
      'push-list',
      'push-delete',
      'card',
    ] as const) {
      expect(translateParams(operation, '1.0', '0.3', { tenant: 'acme' })).not.toHaveProperty('tenant');
    }
    expect(
      JSON.stringify(translateParams('push-set', '1.0', '0.3', { tenant: 'acme', taskId: 't', url: 'u' })),
    ).not.toContain('acme');
  },
  'inline task': () => {
    const configuration = {
      returnImmediately: true,
      taskPushNotificationConfig: { taskId: 't', url: 'https://a.example' },
    };
    expect(translateParams('send', '1.0', '0.3', { message, configuration })).toMatchObject({
      configuration: { blocking: false, pushNotificationConfig: { url: 'https://a.example' } },
    });
    expect(JSON.stringify(translateParams('send', '1.0', '0.3', { message, configuration }))).not.toContain('taskId');
  },
  'several schemes': () => {
    const set = (schemes: unknown) => ({
      taskId: 't',
      pushNotificationConfig: { url: 'u', authentication: { schemes, credentials: 'c' } },
    });
    const translated = (schemes: unknown) => translateParams('push-set', '0.3', '1.0', set(schemes));
    expect(translated(['Bearer', 'Basic'])).toEqual({
      taskId: 't',
      url: 'u',
      authentication: { scheme: 'Bearer', credentials: 'c' },
    });
    expect(translated([])).toMatchObject({ authentication: { scheme: '' } });
    expect(translateParams('push-set', '1.0', '0.3', translated([]))).toEqual(set([]));
  },
  pages: () => {
    expect(translateParams('push-list', '1.0', '0.3', { taskId: 't', pageSize: 3, pageToken: 'x' })).toEqual({
      id: 't',
    });
    expect(translateResult('push-list', '1.0', '0.3', { configs: [], nextPageToken: 'x' })).toEqual([]);
    expect(translateResult('push-list', '1.0', '0.3', {})).toEqual([]);
  },
  'one configuration': () => {
    expect(translateParams('push-get', '0.3', '1.0', { id: 't' })).toEqual({ taskId: 't' });
  },
  list: () => {
    expect(methodOf('0.3', 'list')).toBeNull();
  },
  interfaces: () => {
    const at = (protocolVersion: string, url: string) => ({
      url,
      protocolBinding: 'JSONRPC',
      protocolVersion,
      tenant: 'acme',
    });
    expect(cardTo03({ supportedInterfaces: [at('1.0', 'new'), at('0.3', 'old'), at('0.3.0', 'older')] })).toEqual({
      protocolVersion: '0.3',
      url: 'old',
      preferredTransport: 'JSONRPC',
      additionalInterfaces: [{ url: 'older', transport: 'JSONRPC' }],
    });
    expect(cardTo03({ supportedInterfaces: [at('1.0', 'new')] })).toEqual({
      protocolVersion: '0.3.0',
      url: 'new',
      preferredTransport: 'JSONRPC',
    });
  },
  'hybrid card': () => {
    const supportedInterfaces = [{ url: 'new', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
    expect(cardTo10({ url: 'old', preferredTransport: 'JSONRPC', supportedInterfaces })).toEqual({
      supportedInterfaces,
    });
  },
  'defaults of a card': () => {
    expect(cardTo10({ url: 'u' })).toEqual({
      supportedInterfaces: [{ url: 'u', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }],
    });
  },
  signatures: () => {
    expect(cardTo10({ url: 'u', signatures: [{}] })).not.toHaveProperty('signatures');
    expect(cardTo03({ supportedInterfaces: [], signatures: [{}] })).not.toHaveProperty('signatures');
  },
  'state transition history': () => {
    expect(
      cardTo10({ url: 'u', capabilities: { streaming: true, stateTransitionHistory: true } })['capabilities'],
    ).toEqual({ streaming: true });
  },
  'oauth flows': () => {
    const flows = { implicit: { scopes: {} }, clientCredentials: { scopes: {} } };
    expect(cardTo10({ url: 'u', securitySchemes: { a: { type: 'oauth2', flows } } })['securitySchemes']).toEqual({
      a: { oauth2SecurityScheme: { flows: { clientCredentials: { scopes: {} } } } },
    });
  },
  'error data': () => {
    expect(translateError('0.3', '1.0', { code: -32001, message: 'no', data: { taskId: 't' } })).toEqual({
      code: -32001,
      message: 'no',
      data: [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' },
        { '@type': 'type.googleapis.com/google.protobuf.Struct', value: { taskId: 't' } },
      ],
    });
    expect(translateError('0.3', '1.0', { code: -32603, message: 'no' })).toEqual({ code: -32603, message: 'no' });
    expect(translateError('1.0', '0.3', { code: -32001, message: 'no', data: [] })).toEqual({
      code: -32001,
      message: 'no',
      data: [],
    });
  },
};

describe('lossy mappings', () => {
  it('the page lists those that are tested, and no others', () => {
    expect(rows).toEqual(Object.keys(CASES));
  });

  it.each(Object.entries(CASES))('%s', (_name, check) => {
    check();
  });

  it('a member that means something in the target alone is left out', () => {
    const hidden = { url: 'http://internal.example' };
    const smuggled = [
      translateParams('send', '1.0', '0.3', {
        message,
        configuration: { pushNotificationConfig: hidden, blocking: false },
      }),
      translateParams('send', '0.3', '1.0', {
        message,
        configuration: { taskPushNotificationConfig: hidden, returnImmediately: true },
        tenant: 'acme',
      }),
      translateParams('push-set', '0.3', '1.0', {
        taskId: 't',
        url: hidden.url,
        pushNotificationConfig: { url: 'u', taskId: 'other' },
      }),
      translateParams('push-get', '0.3', '1.0', { id: 't', taskId: 'other' }),
    ];
    expect(smuggled).toEqual([
      { message: { ...message, kind: 'message', role: 'agent' }, configuration: { blocking: true } },
      { message, configuration: {} },
      { taskId: 't', url: 'u' },
      { taskId: 't' },
    ]);
  });
});
