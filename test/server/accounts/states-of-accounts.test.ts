import { expect, test } from 'vitest';
import type { Row } from '#store';
import { createAccountStates } from '#accounts';

/** States of accounts, which a database reads as slowly as the test says. */
function world() {
  let at = 0;
  const answers: ((stopped: readonly string[]) => void)[] = [];
  const rowsOf = (stopped: readonly string[]) => stopped.map((account) => ({ account, state: 'frozen' }));
  const query = () => new Promise<Row[]>((resolve) => answers.push((stopped) => resolve(rowsOf(stopped))));
  const states = createAccountStates({ query }, () => at);
  return { states, answers, wait: (ms: number) => (at += ms) };
}

test('one reading answers all callers for a second', async () => {
  const { states, answers, wait } = world();
  const both = Promise.all(['one', 'two'].map(async (account) => states.stateOf(account)));
  answers[0]!(['two']);
  expect(await both).toEqual(['open', 'frozen']);
  wait(999);
  expect(states.stateOf('two')).toBe('frozen');
  wait(1);
  const next = states.stateOf('two');
  answers[1]!([]);
  expect(await next).toBe('open');
  expect(answers).toHaveLength(2);
});

test('callers end at a database that takes longer than a second, in whatever order it answers', async () => {
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
  ]) {
    const { states, answers, wait } = world();
    const waiting = ['one', 'two', 'three'].map(async (account) => {
      const state = states.stateOf(account);
      wait(1_500);
      return state;
    });
    expect(answers).toHaveLength(3);
    for (const index of order) {
      answers[index]!(['two']);
      await new Promise(setImmediate);
    }
    // None reads once more, which would displace what another one reads.
    expect(answers).toHaveLength(3);
    expect(await Promise.all(waiting)).toEqual(['open', 'frozen', 'open']);
  }
});

test('what was read before a change does not count after it', async () => {
  const { states, answers } = world();
  const waiting = states.stateOf('one');
  states.changed();
  answers[0]!([]);
  await expect.poll(() => answers.length).toBe(2);
  answers[1]!(['one']);
  expect(await waiting).toBe('frozen');
  expect(states.stateOf('one')).toBe('frozen');
});
