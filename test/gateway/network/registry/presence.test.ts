import { describe, expect, test } from 'vitest';
import { createPresence, type PresenceRow } from '../../../../src/gateway/network/registry/presence.ts';

const row = (fields: Partial<PresenceRow>): PresenceRow => ({
  provider: 'p',
  connection: 'a',
  node: 'other',
  epoch: 1,
  leftAt: null,
  revision: 0,
  version: 1,
  ...fields,
});

function world() {
  const told: string[] = [];
  const presence = createPresence({
    self: 'me',
    now: Date.now,
    onChange: () => {},
    onReturned: () => {},
    onSuperseded: (connection) => told.push(`superseded ${connection}`),
    onStray: ({ connection }) => told.push(`stray ${connection}`),
    onLapsed: ({ connection }) => told.push(`lapsed ${connection}`),
  });
  presence.setNodes([{ id: 'other', url: 'https://other.test:1', beat: 1n }]);
  return { presence, told };
}

/** The answer to a write and a poll come over different connections, in any order. */
describe('rows that come in another order than they were written', () => {
  test('leave the newest standing', () => {
    const { presence } = world();
    presence.apply([row({ connection: 'b', epoch: 2, version: 7 })]);
    presence.apply([row({ connection: 'a', epoch: 1, version: 6 })]);
    expect(presence.locate('p')).toMatchObject({ connection: 'b' });
  });

  test('tell a connection whose own join comes last that it was superseded', () => {
    const { presence, told } = world();
    presence.add({ id: 'a', provider: 'p', account: '', network: '' });
    presence.apply([row({ connection: 'b', epoch: 2, version: 7 })]);
    expect(told).toEqual([]);
    presence.apply([row({ connection: 'a', node: 'me', epoch: 1, version: 6 })], 7);
    expect(told).toEqual(['superseded a']);
    expect(presence.locate('p')).toMatchObject({ connection: 'b' });
  });

  test('do not bring back what a poll has shown to be over', () => {
    const { presence, told } = world();
    presence.apply([row({ node: 'me', leftAt: 5, version: 7 })]);
    presence.forget('p');
    presence.apply([row({ node: 'me', version: 6 })], 7);
    expect(presence.locate('p')).toBeNull();
    expect(told).toEqual([]);
  });

  test('do not pass a newer connection, whose join is still on its way, for an old one', () => {
    const { presence, told } = world();
    presence.add({ id: 'c', provider: 'p', account: '', network: '' });
    presence.apply([row({ connection: 'b', epoch: 2, version: 7 })]);
    presence.apply([row({ connection: 'c', node: 'me', epoch: 3, version: 8 })]);
    expect(presence.locate('p')).toEqual({ kind: 'here', connection: 'c' });
    expect(told).toEqual([]);
  });

  test('within one transaction end in the last', () => {
    const { presence, told } = world();
    for (const id of ['a', 'b']) presence.add({ id, provider: 'p', account: '', network: '' });
    presence.apply([row({ node: 'me', version: 3 }), row({ connection: 'b', node: 'me', epoch: 2, version: 3 })]);
    expect(presence.locate('p')).toEqual({ kind: 'here', connection: 'b' });
    expect(told).toEqual(['superseded a']);
  });
});

describe('what the database says of this gateway', () => {
  test('is put right where a connection is not open here, or open and taken as ended', () => {
    const { presence, told } = world();
    presence.add({ id: 'open', provider: 'q', account: '', network: '' });
    presence.apply([
      row({ node: 'me', connection: 'gone' }),
      row({ provider: 'q', node: 'me', connection: 'open', leftAt: 5 }),
    ]);
    expect(told).toEqual(['stray gone', 'lapsed open']);
    expect(presence.locate('p')).toBeNull();
    expect(presence.locate('q')).toEqual({ kind: 'here', connection: 'open' });
  });
});

describe('a gateway without an address', () => {
  test('has providers that others cannot reach', () => {
    const { presence } = world();
    presence.apply([row({})]);
    presence.setNodes([{ id: 'other', url: null, beat: 1n }]);
    expect(presence.locate('p')).toBeNull();
  });
});
