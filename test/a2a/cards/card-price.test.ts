import { parseRates } from '#billing/amounts';
import { expect, test } from 'vitest';
import { cardPrice } from '../../../src/a2a/cards/write-card.ts';
import { agentOffer } from './support/card-world.ts';

const priced = (rates: Readonly<Record<string, number>>, more: object = {}) => {
  const of = agentOffer();
  return { ...of, price: { ...of.price, rates: parseRates(rates) }, ...more };
};

test.each([
  ['by the message', [priced({ call: 0.02 })], { per_call_usd: '0.02' }],
  ['free', [priced({ call: 0 })], { per_call_usd: '0' }],
  ['a micro-USD', [priced({ call: 0.000_001 })], { per_call_usd: '0.000001' }],
  [
    'by the task',
    [priced({ call: 1 }, { agent: { ...agentOffer().agent!, chargedPer: 'task' } })],
    { per_task_usd: '1' },
  ],
  [
    'by its use, under a cap',
    [priced({ prompt: 3, completion: 15, second: 0.001 }, { priceCap: 500_000n })],
    {
      per_call_usd: '0',
      per_second_usd: '0.001',
      per_1m_prompt_tokens_usd: '3',
      per_1m_completion_tokens_usd: '15',
      maximum_usd: '0.5',
    },
  ],
  [
    'differently by two providers',
    [priced({ call: 0.5 }), priced({ call: 0.02 })],
    { per_call_usd: '0.02', maximum_usd: '0.5' },
  ],
])('an agent that is charged %s', (_how, offers, price) => {
  expect(cardPrice(offers)).toEqual({ currency: 'USD', ...price });
});
