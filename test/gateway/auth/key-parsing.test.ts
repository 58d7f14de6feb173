import bs58 from 'bs58';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createKey, hashKey, parseKey } from '../../../src/gateway/auth/api-key.ts';
import { anyCharacter } from '../../support/any-character.ts';

const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 600;
const KINDS = ['live', 'development', 'admin'] as const;
const PREFIX = { live: 'svc-sk-v2-', development: 'svc-sk-dev-', admin: 'svc-admin-' } as const;

describe('the key parser', () => {
  it.each(KINDS)('reads back the %s keys that are made, as their kind and hash', (kind) => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (secret) => {
        const { text, hash } = createKey(kind, () => secret);
        expect(text.startsWith(PREFIX[kind])).toBe(true);
        expect(parseKey(text)).toEqual({ kind, hash });
        expect(hash).toBe(hashKey(text));
        expect(hash).not.toContain(text.slice(12));
      }),
      { examples: [[new Uint8Array(32)], [new Uint8Array(32).fill(255)]] },
    );
  });

  it('makes a different key each time', () => {
    const keys = Array.from({ length: 100 }, () => createKey('live').text);
    expect(new Set(keys).size).toBe(100);
  });

  it('refuses every key with one character changed, dropped, doubled or exchanged', () => {
    const { text } = createKey('live');
    const start = PREFIX.live.length;
    for (let at = start; at < text.length; at += 1) {
      const other = text[at] === 'z' ? 'y' : 'z';
      expect(parseKey(text.slice(0, at) + other + text.slice(at + 1)), `changed at ${at}`).toBeNull();
      expect(parseKey(text.slice(0, at) + text.slice(at + 1)), `dropped at ${at}`).toBeNull();
      expect(parseKey(text.slice(0, at) + text[at] + text.slice(at)), `doubled at ${at}`).toBeNull();
      if (text[at] !== text[at + 1] && at + 1 < text.length) {
        expect(
          parseKey(text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2)),
          `exchanged at ${at}`,
        ).toBeNull();
      }
    }
  });

  it('refuses the secret of one kind under the prefix of another', () => {
    const { text } = createKey('development');
    expect(parseKey(text.replace(PREFIX.development, PREFIX.live))).toBeNull();
    expect(parseKey(text.replace(PREFIX.development, PREFIX.admin))).toBeNull();
  });

  it('refuses secrets of another length with a right checksum', () => {
    for (const length of [0, 31, 33]) {
      const { text } = createKey('live', () => new Uint8Array(length).fill(7));
      expect(parseKey(text)).toBeNull();
    }
  });

  it('survives anything, and takes none of it for a key', () => {
    const digits = fc.string({
      unit: fc.constantFrom(...'123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'.split('')),
      maxLength: 60,
    });
    const prefixed = fc
      .tuple(fc.constantFrom(...Object.values(PREFIX)), fc.oneof(digits, fc.string({ unit: anyCharacter })))
      .map((parts) => parts.join(''));
    const bytes = fc.uint8Array({ minLength: 36, maxLength: 36 }).map((all) => PREFIX.live + bs58.encode(all));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: anyCharacter }), prefixed, bytes), (text) => parseKey(text) === null),
      { numRuns: RUNS },
    );
  });

  it('spends no time on long texts', () => {
    const text = PREFIX.live + 'z'.repeat(30_000);
    const before = process.threadCpuUsage();
    expect(parseKey(text)).toBeNull();
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(100);
  });
});
