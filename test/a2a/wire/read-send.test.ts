import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readSend } from '../../../src/a2a/wire/read-send.ts';
import { translateParams } from '../../../src/a2a/wire/translate.ts';
import { versions } from './support/arbitraries.ts';

const message = (more: object = {}) => ({ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }], ...more });
const legacy = (more: object = {}) => ({
  kind: 'message',
  messageId: 'm',
  role: 'user',
  parts: [{ kind: 'text', text: 'hello' }],
  ...more,
});
const long = 'x'.repeat(257);

describe('reading the parameters of a send', () => {
  it('what the gateway acts on', () => {
    const parts = [{ text: 'a' }, { raw: 'YQ==' }, { url: 'u' }, { data: null }, { text: 'b' }];
    const configuration = {
      returnImmediately: true,
      historyLength: 3,
      acceptedOutputModes: ['text/plain'],
      taskPushNotificationConfig: {
        url: 'https://a.example',
        token: 's',
        authentication: { scheme: 'Bearer', credentials: 'c' },
      },
    };
    expect(
      readSend('1.0', {
        message: message({ taskId: 't', contextId: 'c', referenceTaskIds: ['r'], parts }),
        configuration,
      }),
    ).toEqual({
      messageId: 'm',
      taskId: 't',
      contextId: 'c',
      referenceTaskIds: ['r'],
      texts: ['a', 'b'],
      files: 2,
      data: 1,
      blocking: false,
      historyLength: 3,
      acceptedOutputModes: ['text/plain'],
      pushConfig: {
        id: null,
        taskId: null,
        url: 'https://a.example',
        token: 's',
        authentication: { scheme: 'Bearer', credentials: 'c' },
      },
    });
  });

  it.each([
    ['1.0', {}, true],
    ['1.0', { returnImmediately: false }, true],
    ['1.0', { returnImmediately: true }, false],
    ['1.0', { blocking: false }, true],
    ['0.3', {}, true],
    ['0.3', { blocking: true }, true],
    ['0.3', { blocking: false }, false],
    ['0.3', { returnImmediately: true }, true],
  ] as const)('%s %j waits: %s', (version, configuration, blocking) => {
    expect(readSend(version, { message: version === '1.0' ? message() : legacy(), configuration })).toMatchObject({
      blocking,
    });
  });

  it.each([
    ['1.0', undefined, 'params must be an object with a message'],
    ['1.0', {}, 'message must be an object'],
    ['1.0', { message: [] }, 'message must be an object'],
    ['1.0', { message: message({ messageId: '' }) }, 'message.messageId must be a string of 1 to 256 characters'],
    ['1.0', { message: message({ messageId: 1 }) }, 'message.messageId must be a string of 1 to 256 characters'],
    ['1.0', { message: message({ messageId: long }) }, 'message.messageId must be a string of 1 to 256 characters'],
    ['1.0', { message: message({ taskId: long }) }, 'message.taskId must be a string of 1 to 256 characters'],
    ['1.0', { message: message({ contextId: {} }) }, 'message.contextId must be a string of 1 to 256 characters'],
    ['1.0', { message: message({ role: 'ROLE_AGENT' }) }, 'message.role must be "ROLE_USER"'],
    ['0.3', { message: legacy({ role: 'agent' }) }, 'message.role must be "user"'],
    ['1.0', { message: message({ parts: [] }) }, 'message.parts must be an array of at least one part'],
    ['1.0', { message: message({ parts: { text: 'a' } }) }, 'message.parts must be an array of at least one part'],
    [
      '1.0',
      { message: message({ parts: Array.from({ length: 1_001 }, () => ({ text: '' })) }) },
      'message.parts must have at most 1000 parts',
    ],
    ['1.0', { message: message({ parts: [{ text: 'a' }, 1] }) }, 'message.parts[1] must be an object'],
    ['1.0', { message: message({ parts: [{ text: 1 }] }) }, 'message.parts[0].text must be a string'],
    [
      '1.0',
      { message: message({ parts: [{ text: 'a', url: 'b' }] }) },
      'message.parts[0] must have one of text, raw, url, data, not both text and url',
    ],
    [
      '1.0',
      { message: message({ parts: [{ kind: 'file', file: {} }] }) },
      'message.parts[0] must have one of text, raw, url, data; `kind` is of A2A 0.3',
    ],
    ['0.3', { message: legacy({ parts: [{ text: 'a' }] }) }, 'message.parts[0].kind must be "text", "file" or "data"'],
    [
      '0.3',
      { message: legacy({ parts: [{ kind: 'file', file: {} }] }) },
      'message.parts[0].file must have bytes or uri, a string',
    ],
    ['0.3', { message: legacy({ parts: [{ kind: 'data', data: 1 }] }) }, 'message.parts[0].data must be an object'],
    [
      '1.0',
      { message: message({ referenceTaskIds: 'a' }) },
      'message.referenceTaskIds must be an array of at most 100 strings',
    ],
    ['1.0', { message: message(), configuration: 1 }, 'configuration must be an object'],
    ['1.0', { message: message(), metadata: 'x' }, 'metadata must be an object'],
    ['0.3', { message: legacy({ metadata: [] }) }, 'message.metadata must be an object'],
    ['0.3', { message: legacy(), configuration: { blocking: 'no' } }, 'configuration.blocking must be true or false'],
    [
      '1.0',
      { message: message(), configuration: { historyLength: -1 } },
      'configuration.historyLength must be a whole number of at least 0',
    ],
    [
      '1.0',
      { message: message(), configuration: { acceptedOutputModes: [1] } },
      'configuration.acceptedOutputModes must be an array of at most 100 strings',
    ],
    [
      '1.0',
      { message: message(), configuration: { taskPushNotificationConfig: {} } },
      'configuration.taskPushNotificationConfig.url must be a URL of at most 2048 characters',
    ],
    [
      '0.3',
      { message: legacy(), configuration: { pushNotificationConfig: { url: 'u', token: 1 } } },
      'configuration.pushNotificationConfig.token must be a string of at most 8192 characters',
    ],
  ] as const)('%s %j is refused', (version, params, fault) => {
    expect(readSend(version, params)).toBe(fault);
  });

  it('says the same of parameters in either version', () => {
    const valid = versions({ extras: true });
    const asUser = (params: object) => ({
      ...params,
      message: { ...(params as { message: object }).message, role: 'ROLE_USER' },
    });
    fc.assert(
      fc.property(valid['1.0'].send.map(asUser), (params) => {
        const here = readSend('1.0', params);
        expect(here).toBeTypeOf('object');
        expect(readSend('0.3', translateParams('send', '1.0', '0.3', params))).toEqual(here);
      }),
    );
  });
});
