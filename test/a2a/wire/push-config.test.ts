import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPushConfig, writePushConfig } from '../../../src/a2a/wire/push-config.ts';
import { translateParams } from '../../../src/a2a/wire/translate.ts';
import { versions } from './support/arbitraries.ts';

describe('a push notification configuration', () => {
  it('is the same read in either version, and written again', () => {
    fc.assert(
      fc.property(versions({ extras: false })['1.0'].push, (params) => {
        const config = readPushConfig('1.0', params);
        if (typeof config === 'string') throw new Error(config);
        const there = translateParams('push-set', '1.0', '0.3', params);
        expect(readPushConfig('0.3', there)).toEqual(config);
        expect([writePushConfig('1.0', config), writePushConfig('0.3', config)]).toEqual([params, there]);
        expect(
          readPushConfig(
            '0.3',
            { pushNotificationConfig: writePushConfig('0.3', config, { inline: true }) },
            { inline: true },
          ),
        ).toEqual({
          ...config,
          taskId: null,
        });
      }),
    );
  });

  it.each([
    ['1.0', null, 'params must be an object'],
    ['1.0', { url: 'u' }, 'taskId must be a string of 1 to 256 characters'],
    ['1.0', { taskId: 't' }, 'url must be a URL of at most 2048 characters'],
    ['1.0', { taskId: 't', url: 'u', id: 1 }, 'id must be a string of 1 to 256 characters'],
    ['1.0', { taskId: 't', url: 'u', authentication: 1 }, 'authentication must be an object'],
    [
      '1.0',
      { taskId: 't', url: 'u', authentication: { scheme: 'Bearer\r\nx: y' } },
      'authentication.scheme must be the name of an HTTP authentication scheme',
    ],
    ['0.3', { taskId: 't', url: 'u' }, 'pushNotificationConfig must be an object'],
    [
      '0.3',
      { taskId: 't', pushNotificationConfig: { url: 'u', authentication: { schemes: [1] } } },
      'pushNotificationConfig.authentication.schemes must be an array of names of HTTP authentication schemes',
    ],
  ] as const)('%s %j is refused', (version, value, fault) => {
    expect(readPushConfig(version, value)).toBe(fault);
  });

  it('no scheme of 0.3 is no authentication', () => {
    const value = { taskId: 't', pushNotificationConfig: { url: 'u', authentication: { schemes: [] } } };
    expect(readPushConfig('0.3', value)).toEqual({
      id: null,
      taskId: 't',
      url: 'u',
      token: null,
      authentication: null,
    });
  });
});
