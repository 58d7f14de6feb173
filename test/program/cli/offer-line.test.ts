import { expect, it } from 'vitest';
import { describeService } from '../../../src/program/cli/gateway/service-report.ts';
import { agentAt, modelAt, toolAt } from '../../support/provider-proxy.ts';

it('a service is one line, with the cheapest and the dearest price where they differ', () => {
  expect(describeService(modelAt('mine/one', 'http://127.0.0.1:9/v1'))).toMatch(
    /^mine\/one {2}by Mine {2}prompt [\d.]+\/1M, completion [\d.]+\/1M {2}→ http/,
  );
  const { service, target } = toolAt('mine/search', 'http://127.0.0.1:9/mcp');
  const priced = {
    ...service,
    rates: { call: 2_000_000_000n },
    variants: { read: { call: 5_000_000_000n }, ping: { call: 0n } },
  };
  expect(describeService({ service: priced, target })).toBe(
    'mine/search  by Mine  call 0 to 0.005  → http://127.0.0.1:9/mcp (no key)',
  );
});

it('what agents below an agent may spend is shown with its price', () => {
  const agent = agentAt('mine/planner', 'http://127.0.0.1:9');
  expect(describeService(agent)).not.toContain('nested_max');
  const service = { ...agent.service, agent: { ...(agent.service as { agent: object }).agent, nestedMax: 250_000n } };
  expect(describeService({ ...agent, service: service as typeof agent.service })).toContain(', nested_max 0.25  →');
});

it('prices of parts of the tokens are for a million of them, and those of sound for a minute', () => {
  const { service, target } = modelAt('mine/one', 'http://127.0.0.1:9/v1');
  const rates = {
    prompt: 3_300_000n,
    completion: 16_500_000n,
    input_cache_read: 330_000n,
    input_cache_write: 4_125_000n,
    second: 100_000_000n,
  };
  expect(describeService({ service: { ...service, rates, variants: {} }, target })).toContain(
    'prompt 3.3/1M, completion 16.5/1M, minute 0.006, input_cache_read 0.33/1M, input_cache_write 4.125/1M',
  );
});
