import { expect, test } from 'vitest';
import { toScenario, type ConformanceResult } from '../../support/conformance-result.ts';
import { expectOnly } from './expected-failures.ts';

function resultOf(statuses: Readonly<Record<string, readonly string[]>>): ConformanceResult {
  const scenarios = Object.entries(statuses).map(([name, all]) =>
    toScenario(
      name,
      true,
      all.map((status) => ({ id: 'a-check', status, errorMessage: 'broken' })),
    ),
  );
  const passed = scenarios.filter((scenario) => scenario.passed).map((scenario) => scenario.name);
  return {
    scenarios,
    passed,
    failed: scenarios.filter((scenario) => !scenario.passed),
    scored: { passed: passed.length, of: scenarios.length },
    ms: 0,
    output: '',
  };
}

test('a list of expected failures can only shrink', () => {
  const result = resultOf({ good: ['SUCCESS', 'WARNING'], bad: ['SUCCESS', 'FAILURE'] });
  expect(() => expectOnly(result, { bad: 'known' })).not.toThrow();
  expect(() => expectOnly(result, {})).toThrow('bad failed\n  a-check: broken');
  expect(() => expectOnly(result, { bad: 'known', good: 'known' })).toThrow('good passes: take it off the list');
  expect(() => expectOnly(result, { bad: 'known', gone: 'known' })).toThrow('gone did not run: take it off the list');
});

test('a scenario that looked at nothing has not passed', () => {
  expect(() => expectOnly(resultOf({ idle: ['SKIPPED'], silent: [] }), {})).toThrow(
    'idle failed: no check of it was made\nsilent failed: no check of it was made',
  );
});
