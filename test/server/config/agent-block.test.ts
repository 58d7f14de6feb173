import { expect, test } from 'vitest';
import { block, load, problemsOf } from './load.ts';

const ratesOf = (changes: Readonly<Record<string, string | null>>) =>
  load(block('agents', { 'pricing.per_call': null, ...changes })).services[0]!.service.rates;

const CAP = { 'pricing.per_call_max': '0.5' };

test('an agent is priced by the call, by its tokens, or by both', () => {
  expect(ratesOf({ 'pricing.per_call': '0' })).toEqual({ call: 0n });
  expect(ratesOf({ 'pricing.completion': '2', ...CAP })).toEqual({ completion: 2_000_000n });
  expect(ratesOf({ 'pricing.prompt': '1', 'pricing.completion': '2', 'pricing.per_call': '0.000001', ...CAP })).toEqual(
    {
      prompt: 1_000_000n,
      completion: 2_000_000n,
      call: 1_000_000n,
    },
  );
});

test('an agent has at least one price', () => {
  expect(problemsOf(block('agents', { 'pricing.per_call': null }))).toMatchObject([
    { key: 'agents[0].pricing', wrong: 'has no price' },
  ]);
});

test('what is charged by use has a cap, and nothing else has', () => {
  expect(problemsOf(block('agents', { 'pricing.prompt': '1' }))).toMatchObject([
    {
      key: 'agents[0].pricing.per_call_max',
      wrong: 'is missing',
      right: expect.stringContaining('a price by use needs per_call_max') as string,
    },
  ]);
  expect(problemsOf(block('agents', CAP))).toMatchObject([
    { key: 'agents[0].pricing.per_call_max', wrong: 'has no effect without a price by use' },
  ]);
  expect(load(block('agents', { 'pricing.prompt': '1', ...CAP })).services[0]!.service).toMatchObject({
    priceCap: 500_000n,
  });
});

test('a price is for each message or for all of a task, not both', () => {
  const agentOf = (changes: Readonly<Record<string, string | null>>) =>
    load(block('agents', changes)).services[0]!.service;
  expect(agentOf({})).toMatchObject({ agent: { chargedPer: 'message' } });
  expect(agentOf({ 'pricing.per_call': null, 'pricing.per_task': '0.5' })).toMatchObject({
    rates: { call: 500_000_000_000n },
    agent: { chargedPer: 'task' },
  });
  expect(problemsOf(block('agents', { 'pricing.per_task': '1' }))).toMatchObject([
    { key: 'agents[0].pricing.per_task', wrong: 'is given together with per_call' },
  ]);
});
