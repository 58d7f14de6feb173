import { describe, expect, test } from 'vitest';
import { interpretedFields, foldName, ambiguousKeyAt } from '#wire';
import { findAmbiguousKey } from '../../../../src/foundation/wire/json/ambiguous-keys.ts';
import { spellingsOf } from '../../../support/spellings.ts';

const NAMES = [
  'max_tokens',
  'model',
  'stream_options',
  'taskId',
  'messageId',
  '_meta',
  'requestState',
  'jsonrpc',
  'io.example/task-key',
  'n',
  'id',
];
const names = interpretedFields(NAMES);

describe('a look-alike', () => {
  test.each(NAMES)('of %s is found however it is spelled', (name) => {
    const spellings = spellingsOf(name);
    expect(spellings.length).toBeGreaterThan(9);
    for (const { how, text } of spellings)
      expect(findAmbiguousKey([name, text], names), how).toEqual({ name: text, likelyName: name });
  });

  test('is every character that the simple folding of Unicode has for a letter', () => {
    // What encoding/json of Go goes by. A regular expression with `i` and `u` folds by the same table.
    for (const letter of 'abcdefghijklmnopqrstuvwxyz') {
      const same = new RegExp(`^${letter}$`, 'iu');
      for (let code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code <= 0xdfff) continue;
        const char = String.fromCodePoint(code);
        if (same.test(char)) expect(foldName(`x${char}y`), code.toString(16)).toBe(`x${letter}y`);
      }
    }
  });

  test('is told in words that show what is not seen', () => {
    const fault = ambiguousKeyAt({ list: [{ id: 1 }, { 'i\u200bd': 2 }] }, [[['list', '*'], names]], 'params.');
    expect(fault).toEqual({
      message: 'params.list[1]."i\\u200bd" must be written id: some servers would take the one for the other',
      param: 'params.list[1].id',
    });
  });
});

test('names that mean something else are none', () => {
  const honest = [
    'max_tokens_per_image',
    'models',
    'modèle',
    'task',
    'message',
    'meta_data',
    'requests',
    'idx',
    'нет',
    '模型',
    '',
    '\0',
    '__proto__',
  ];
  expect(
    findAmbiguousKey([...NAMES, ...honest, 'toString', 'constructor', 'hasOwnProperty', '\ud800'], names),
  ).toBeNull();
});

test('a name with U+0000 that begins with another one is a name of its own to nobody', () => {
  expect(findAmbiguousKey(['id\0entity'], names)).toEqual({ name: 'id\0entity', likelyName: 'id' });
  expect(findAmbiguousKey(['x\0id'], names)).toBeNull();
});

test('long names take no time', () => {
  const began = process.cpuUsage().user;
  for (const long of [
    '\ufdfa'.repeat(3_000_000),
    '_'.repeat(9_000_000),
    'x'.repeat(9_000_000),
    `${'\u200b'.repeat(3_000_000)}id`,
  ])
    findAmbiguousKey([long], names);
  // What is longer than any name is refused unread.
  expect(findAmbiguousKey([`${'_'.repeat(1_000_000)}id`], names)?.likelyName).toBeNull();
  expect(findAmbiguousKey([`${'_'.repeat(200)}id`], names)?.likelyName).toBe('id');
  expect(process.cpuUsage().user - began).toBeLessThan(3_000_000);
});

test('ten thousand names of any characters take a small multiple of the time of plain ones', () => {
  // As many as a body may have: `limits.json_keys_max`, and 64 bytes for each.
  const cost = (char: string, length: number): number => {
    const list: string[] = [];
    for (let bytes = 0; list.length < 10_000;) {
      const name = `${char.repeat(length)}z${list.length}`;
      bytes += Buffer.byteLength(name);
      if (bytes > 640_000) break;
      list.push(name);
    }
    const once = () => {
      const began = process.threadCpuUsage();
      expect(findAmbiguousKey(list, names)).toBeNull();
      const { user, system } = process.threadCpuUsage(began);
      return user + system;
    };
    return Math.min(once(), once());
  };
  cost('x_', 31);
  const plain = Math.max(cost('_', 60), cost('x_', 31), cost('x_', 4));
  const hostile = '\ufdfa \u3300 \u2a76 \u0345 \u0300 \u017f \ufb03 \u4e00 \u{1d41a} \u00ad'.split(' ');
  for (const char of [...hostile, '\u0323\u0301\u0327\u05b0'])
    for (const length of [4, 18, 60])
      expect(cost(char, length), `U+${char.codePointAt(0)!.toString(16)} ${length} times`).toBeLessThan(4 * plain);
});

test("what begins as the gateway's own names do, and is none of them, is found with those that there are", () => {
  const own = ['tollgate/max_cost', 'tollgate/receipt'];
  const names = interpretedFields([...own, 'progressToken']);
  for (const name of [
    'tollgate/cap',
    'Tollgate/max_costs',
    'TOLL_GATE/x',
    '\uff54ollgate\uff0fbudget',
    'tollgate\\limit',
    'tollgate/',
  ])
    expect(findAmbiguousKey([...own, name], names), name).toEqual({ name, likelyName: null, own });
  const fault = ambiguousKeyAt({ _meta: { 'tollgate/cap': 1 } }, [[['_meta'], names]], 'params.');
  expect(fault).toEqual({
    message:
      'params._meta."tollgate/cap" is not known; what begins with tollgate/ can be tollgate/max_cost, tollgate/receipt',
    param: 'params._meta',
  });
  const others = [
    'tollgate',
    'tollgateway/x',
    'tollgate.example.com/x',
    'example.com/tollgate/x',
    'toll/gate',
    'x402/y',
  ];
  expect(findAmbiguousKey(others, names)).toBeNull();
  // Where the gateway has no names of its own, none is kept for it.
  expect(findAmbiguousKey(['tollgate/cap'], interpretedFields(['id']))).toBeNull();
});
