import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bareFromResult,
  bareFromSend,
  isBareBody,
  resultFromBare,
  sendFromBare,
} from '../../../src/a2a/wire/bare-body.ts';
import { OPERATIONS } from '../../../src/a2a/wire/protocol.ts';
import { readPushConfig } from '../../../src/a2a/wire/push-config.ts';
import { readEvent } from '../../../src/a2a/wire/events.ts';
import { readSend } from '../../../src/a2a/wire/read-send.ts';
import { restParams, restRequest, matchRest } from '../../../src/a2a/wire/rest.ts';
import { legacyRestParams, legacyRestResult } from '../../../src/a2a/wire/rest-legacy.ts';
import { translateError } from '../../../src/a2a/wire/errors.ts';
import { translateParams, translateEvent, translateResult } from '../../../src/a2a/wire/translate.ts';
import { atThisLoad } from '../../support/at-this-load.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { anyWebPath } from '../../support/any-web-url.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 200_000 : 400;

const NAMES =
  'kind task message statusUpdate artifactUpdate status state final parts role id taskId contextId messageId text file bytes uri raw url data value metadata data_part_compat history artifacts artifact configuration blocking returnImmediately pushNotificationConfig taskPushNotificationConfig authentication schemes scheme configs tasks supportedInterfaces additionalInterfaces capabilities securitySchemes security securityRequirements skills flows type list __proto__ constructor toString prototype hasOwnProperty tollgate/usage'.split(
    ' ',
  );
const WORDS = [
  'task',
  'message',
  'status-update',
  'text',
  'file',
  'data',
  'user',
  'ROLE_USER',
  'working',
  'TASK_STATE_COMPLETED',
  'apiKey',
  'oauth2',
  '',
  '0.3',
];

/** JSON values of the protocol's own names in wrong places, with own members named as those of every object. */
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, -1, 1e308, ...WORDS),
    fc.string({ maxLength: 5, unit: anyCharacter }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...NAMES), tie('value')), { maxLength: 6 })
      .map((members) => Object.fromEntries(members)),
  ),
}));
const operation = fc.constantFrom(...OPERATIONS);
const direction = fc.constantFrom(['0.3', '1.0'] as const, ['1.0', '0.3'] as const);
const isFault = (read: unknown): boolean => typeof read === 'string' && read.length > 0 && read.length < 200;

describe('hostile values', () => {
  it('are translated to JSON, or stay as they are', () => {
    fc.assert(
      fc.property(value, operation, direction, (hostile, one, [from, target]) => {
        const before = JSON.stringify(hostile);
        for (const result of [
          translateParams(one, from, target, hostile),
          translateResult(one, from, target, hostile),
          translateEvent(from, target, hostile),
          legacyRestResult(one, hostile),
          translateError(from, target, { code: -32001, message: 'no', data: hostile }),
        ]) {
          expect(JSON.parse(JSON.stringify(result ?? null))).toEqual(result ?? null);
        }
        expect(JSON.stringify(hostile)).toBe(before);
      }),
      { numRuns: runs },
    );
  });

  it('are read, or refused with a word', () => {
    fc.assert(
      fc.property(value, operation, direction, (hostile, one, [version]) => {
        const event = readEvent(version, hostile);
        expect(event === null || typeof event.output === 'boolean').toBe(true);
        for (const read of [
          readSend(version, hostile),
          readSend(version, { message: hostile }),
          readPushConfig(version, hostile),
        ]) {
          expect(typeof read === 'object' || isFault(read)).toBe(true);
        }
        const legacy = legacyRestParams(
          { operation: one, ids: {} },
          { query: { historyLength: hostile }, body: hostile },
        );
        expect(typeof legacy === 'object' || isFault(legacy)).toBe(true);
        const params = restParams(
          { operation: one, ids: {} },
          { query: { historyLength: hostile, status: hostile }, body: hostile },
        );
        expect(typeof params === 'object' || isFault(params)).toBe(true);
        if (typeof params !== 'string') {
          const request = restRequest(one, params);
          expect(typeof request === 'object' || isFault(request)).toBe(true);
        }
      }),
      { numRuns: runs },
    );
  });

  it('are bare bodies or none', () => {
    fc.assert(
      fc.property(value, (hostile) => {
        const body: unknown = { message: hostile };
        if (isBareBody(body)) bareFromSend(sendFromBare(body));
        for (const reply of [bareFromResult(hostile), resultFromBare(hostile)]) expect(typeof reply).toBe('object');
      }),
      { numRuns: runs },
    );
  });

  it('are paths or none', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: anyCharacter }),
          anyWebPath,
          fc.constantFrom('/tasks/%', '/%/tasks', '//tasks//:cancel'),
        ),
        (path) => {
          const match = matchRest('1.0', 'GET', path);
          expect('operation' in match || Array.isArray(match.allowed)).toBe(true);
        },
      ),
      { numRuns: runs },
    );
  });

  it('of great length take little time', () => {
    const started = performance.now();
    const parts = Array.from({ length: 100_000 }, () => ({ text: 'x' }));
    translateEvent('1.0', '0.3', { message: { messageId: 'm', parts } });
    matchRest('1.0', 'GET', `/${'tasks/'.repeat(600)}`);
    matchRest('1.0', 'GET', `/tasks/${':cancel'.repeat(500)}`);
    expect(performance.now() - started).toBeLessThan(atThisLoad(2_000));
  });

  it('with a member __proto__ change no prototype', () => {
    const hostile: unknown = JSON.parse('{"task":{"id":"t","status":{"state":"working"},"__proto__":{"polluted":1}}}');
    const there = translateEvent('1.0', '0.3', hostile) as object;
    expect(Object.getPrototypeOf(there)).toBe(Object.prototype);
    expect(Object.hasOwn(there, '__proto__')).toBe(true);
    expect('polluted' in {}).toBe(false);
  });
});
