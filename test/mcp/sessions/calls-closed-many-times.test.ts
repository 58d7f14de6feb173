import { expect, test } from 'vitest';
import { createUnansweredCalls } from '../../../src/mcp/translators/legacy-to-legacy.ts';
import type { LegacySession } from '../../../src/mcp/request/mcp-request.ts';

/** More than a session keeps one by one. */
const CLOSED = 3_000;
const session = (): LegacySession => ({ id: 'one' }) as LegacySession;

for (const [form, idOf] of [
  ['numbers', (n: number) => n],
  // As the Java SDK makes them.
  ['strings that end with a number', (n: number) => `6c3f1a9e-${n}`],
] as const)
  test(`a session goes on after thousands of calls without an answer, whose ids are ${form}`, () => {
    const unanswered = createUnansweredCalls();
    const one = session();
    const refused: number[] = [];
    for (let n = 0; n < CLOSED; n++) {
      if (unanswered.fault(one, idOf(n)) !== null) refused.push(n);
      unanswered.add(one, idOf(n));
    }
    expect(refused).toEqual([]);
    expect(unanswered.fault(one, idOf(CLOSED))).toBeNull();
    // No id of a closed call may be used again: its answer may still come, and would be given for another call.
    const faults = Array.from({ length: CLOSED }, (_, n) => unanswered.fault(one, idOf(n)) ?? `${n} is let through`);
    expect(faults.filter((fault) => !/^A call with this id (?:may have|has) no answer yet\./.test(fault))).toEqual([]);
    // Neither 7 and "7" nor the same number after another beginning are one id.
    expect(unanswered.fault(one, '7')).toBeNull();
    expect(unanswered.fault(one, 'another-7')).toBeNull();
  });

test('a client may count with more than one counter', () => {
  const unanswered = createUnansweredCalls();
  const one = session();
  for (let n = 0; n < CLOSED; n++) unanswered.add(one, n % 2 === 0 ? n : `call-${n}`);
  expect(unanswered.fault(one, CLOSED)).toBeNull();
  expect(unanswered.fault(one, `call-${CLOSED + 1}`)).toBeNull();
  const closed = Array.from({ length: CLOSED }, (_, n) => (n % 2 === 0 ? n : `call-${n}`));
  expect(closed.filter((id) => unanswered.fault(one, id) === null)).toEqual([]);
});

test('ids that are not counted fill a session', () => {
  const unanswered = createUnansweredCalls();
  const one = session();
  for (let n = 0; n < 1_000; n++) unanswered.add(one, `${n}-of-many`);
  expect(unanswered.fault(one, 'another one')).toContain('Open another session');
  expect(unanswered.fault(session(), 'another one')).toBeNull();
});
