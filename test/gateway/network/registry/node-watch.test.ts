import { describe, expect, test } from 'vitest';
import { createNodeWatch } from '../../../../src/gateway/network/registry/change-feed.ts';

const row = (id: string, beat: bigint) => ({ version: 1n, id, url: `https://${id}.test:1`, beat });
const ids = (nodes: readonly { readonly id: string }[]) => nodes.map(({ id }) => id);

describe('a gateway among others', () => {
  test('is silent once its beat has stood still for the lease, and lives again with the next beat', () => {
    const watch = createNodeWatch({ self: 'me', leaseMs: 1_000 });
    for (let at = 0; at <= 1_000; at += 200) expect(ids(watch.observe([row('a', 5n)], at).live)).toEqual(['a']);
    expect(watch.observe([row('a', 5n)], 1_200)).toMatchObject({ live: [], silent: [{ id: 'a', beat: 5n }] });
    expect(ids(watch.observe([row('a', 6n)], 1_400).live)).toEqual(['a']);
  });

  test('is not taken as silent for the time in which nobody could look', () => {
    const watch = createNodeWatch({ self: 'me', leaseMs: 1_000 });
    watch.observe([row('a', 5n)], 0);
    expect(ids(watch.observe([row('a', 5n)], 60_000).live)).toEqual(['a']);
    for (let at = 60_200; at <= 61_000; at += 200) expect(ids(watch.observe([row('a', 5n)], at).live)).toEqual(['a']);
    expect(ids(watch.observe([row('a', 5n)], 61_200).silent)).toEqual(['a']);
  });

  test('never takes itself as silent', () => {
    const watch = createNodeWatch({ self: 'me', leaseMs: 1_000 });
    for (let at = 0; at <= 5_000; at += 200) expect(ids(watch.observe([row('me', 5n)], at).live)).toEqual(['me']);
  });

  test('may be the first', () => {
    const watch = createNodeWatch({ self: 'me', leaseMs: 1_000 });
    expect(watch.observe([{ version: 0n, id: null, url: null, beat: null }], 0)).toEqual({ live: [], silent: [] });
  });
});
