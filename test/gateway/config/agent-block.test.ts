import { expect, test } from 'vitest';
import { block, load, problemsOf } from './load.ts';

const ratesOf = (changes: Readonly<Record<string, string | null>>) =>
  load(block('agents', { 'pricing.per_call': null, ...changes })).services[0]!.service.rates;

test('an agent is priced by the call, by its tokens, or by both', () => {
  expect(ratesOf({ 'pricing.per_call': '0' })).toEqual({ call: 0n });
  expect(ratesOf({ 'pricing.completion': '2' })).toEqual({ completion: 2_000_000n });
  expect(ratesOf({ 'pricing.prompt': '1', 'pricing.completion': '2', 'pricing.per_call': '0.000001' })).toEqual({
    prompt: 1_000_000n,
    completion: 2_000_000n,
    call: 1_000_000n,
  });
});

test('an agent has at least one price', () => {
  expect(problemsOf(block('agents', { 'pricing.per_call': null }))).toMatchObject([{ key: 'agents[0].pricing', wrong: 'has no price' }]);
});
