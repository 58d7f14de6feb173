import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findMethod,
  isStreaming,
  methodOf,
  operationOf,
  OPERATIONS,
  readVersion,
} from '../../../src/a2a/wire/protocol.ts';

describe('the version of a request', () => {
  it.each([
    [undefined, undefined, '0.3'],
    ['', '', '0.3'],
    [' ', undefined, '0.3'],
    ['0.3', undefined, '0.3'],
    ['0.3.0', undefined, '0.3'],
    ['1.0', undefined, '1.0'],
    [' 1.0 ', undefined, '1.0'],
    ['1.0.1', undefined, '1.0'],
    ['1.0, 1.0', undefined, '1.0'],
    [['1.0', '1.0'], undefined, '1.0'],
    [undefined, '1.0', '1.0'],
    ['', '1.0', '1.0'],
    ['0.3', '1.0', '0.3'],
  ])('header %j and query %j mean %s', (header, query, version) => {
    expect(readVersion(header, query)).toEqual({ version });
  });

  it.each(['0.2', '0.5', '1', '1.1', '2.0', '10.0', '1.0.', '1.0-beta', '0.3, 1.0', 'latest', '1.0.1.2'])(
    '%s is not supported',
    (header) => {
      expect(readVersion(header).fault).toBe(
        `A2A version ${JSON.stringify(header)} is not supported here: use 0.3 or 1.0`,
      );
    },
  );

  it('anything else is a version or a fault', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (header, query) => {
        const { version, fault } = readVersion(header, query);
        expect(version === undefined).toBe(fault !== undefined);
        expect((fault ?? '').length).toBeLessThan(400);
      }),
    );
  });

  it('a method belongs to one version, and streams or not', () => {
    expect([
      operationOf('0.3', 'message/send'),
      operationOf('1.0', 'message/send'),
      operationOf('1.0', 'SendMessage'),
    ]).toEqual(['send', null, 'send']);
    expect(findMethod('tasks/resubscribe')).toEqual({ version: '0.3', operation: 'subscribe' });
    expect([findMethod('tasks/list'), findMethod('__proto__'), findMethod('constructor')]).toEqual([null, null, null]);
    expect([methodOf('0.3', 'list'), methodOf('1.0', 'list')]).toEqual([null, 'ListTasks']);
    expect(OPERATIONS.filter(isStreaming)).toEqual(['stream', 'subscribe']);
  });
});
