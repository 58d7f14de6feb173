import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { translateParams, translateEvent, translateResult } from '../../../src/a2a/wire/translate.ts';
import type { A2aOperation } from '../../../src/a2a/wire/protocol.ts';
import { versions, type Versions } from './support/arbitraries.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 100;
const VALID = versions({ extras: true });

const RESULTS: readonly (readonly [A2aOperation, (valid: Versions) => fc.Arbitrary<unknown>])[] = [
  ['send', (valid) => valid.sent],
  ['stream', (valid) => valid.event],
  ['get', (valid) => valid.task],
  ['cancel', (valid) => valid.task],
  ['subscribe', (valid) => valid.event],
  ['push-set', (valid) => valid.push],
  ['push-get', (valid) => valid.push],
  ['card', (valid) => valid.card],
];

const id = fc.stringMatching(/^[a-z0-9-]{1,12}$/);
const historyLength = fc.nat(100);
const metadata = fc.dictionary(id, fc.jsonValue({ maxDepth: 1 }));

const PARAMS: readonly (readonly [A2aOperation, '0.3' | '1.0', fc.Arbitrary<unknown>])[] = (
  ['0.3', '1.0'] as const
).flatMap((version) => {
  const config = version === '0.3' ? fc.record({ id, pushNotificationConfigId: id }) : fc.record({ taskId: id, id });
  return [
    ['send', version, VALID[version].send] as const,
    ['stream', version, VALID[version].send] as const,
    ['get', version, fc.record({ id, historyLength }, { requiredKeys: ['id'] })] as const,
    ['cancel', version, fc.record({ id, metadata }, { requiredKeys: ['id'] })] as const,
    ['subscribe', version, fc.record({ id })] as const,
    ['push-set', version, VALID[version].push] as const,
    ['push-get', version, config] as const,
    ['push-list', version, version === '0.3' ? fc.record({ id }) : fc.record({ taskId: id })] as const,
    ['push-delete', version, config] as const,
    ['card', version, fc.constant({})] as const,
  ];
});

const OTHER = { '0.3': '1.0', '1.0': '0.3' } as const;

describe('there and back again', () => {
  describe.each(['0.3', '1.0'] as const)('from %s', (version) => {
    it.each(RESULTS)('a result of %s is the same', (operation, of) => {
      fc.assert(
        fc.property(of(VALID[version]), (result) => {
          const there = translateResult(operation, version, OTHER[version], result);
          expect(there).not.toEqual(result);
          expect(translateResult(operation, OTHER[version], version, there)).toEqual(result);
        }),
        { numRuns: runs },
      );
    });

    it('a list of push notification configurations is the same', () => {
      fc.assert(
        fc.property(fc.array(VALID[version].push, { maxLength: 3 }), (configs) => {
          const list = version === '0.3' ? configs : { configs };
          const there = translateResult('push-list', version, OTHER[version], list);
          expect(translateResult('push-list', OTHER[version], version, there)).toEqual(list);
        }),
        { numRuns: 100 },
      );
    });

    it('what a delete answers is the same', () => {
      const answer = version === '0.3' ? null : {};
      const there = translateResult('push-delete', version, OTHER[version], answer);
      expect(there).toEqual(version === '0.3' ? {} : null);
      expect(translateResult('push-delete', OTHER[version], version, there)).toEqual(answer);
    });
  });

  it.each(PARAMS)('parameters of %s from %s are the same', (operation, version, arbitrary) => {
    fc.assert(
      fc.property(arbitrary, (params) => {
        const there = translateParams(operation, version, OTHER[version], params);
        expect(translateParams(operation, OTHER[version], version, there)).toEqual(params);
      }),
      { numRuns: runs },
    );
  });

  it('nothing is touched where the versions agree', () => {
    const value = { kind: 'task', task: { id: 'x' } };
    for (const version of ['0.3', '1.0'] as const) {
      expect(translateEvent(version, version, value)).toBe(value);
      expect(translateResult('get', version, version, value)).toBe(value);
      expect(translateParams('send', version, version, value)).toBe(value);
    }
  });

  it('the source is left as it was', () => {
    fc.assert(
      fc.property(VALID['1.0'].event, VALID['0.3'].send, (event, send) => {
        const [before, sentBefore] = [JSON.stringify(event), JSON.stringify(send)];
        translateEvent('1.0', '0.3', event);
        translateParams('send', '0.3', '1.0', send);
        expect([JSON.stringify(event), JSON.stringify(send)]).toEqual([before, sentBefore]);
      }),
      { numRuns: 100 },
    );
  });
});
