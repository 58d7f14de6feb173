import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cost, METERS, TOKEN_PARTS } from '#billing/amounts';
import { costOfParts, partsOfCharge } from '../../src/openai/chat/reply/chat-end.ts';
import { requestOf, WIRES } from '../peers/wires.ts';
import { modelBlock, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// What a call cost is shown in parts, which add up to it.

const TOKENS: ReadonlySet<string> = new Set([
  'prompt',
  'completion',
  'image',
  ...TOKEN_PARTS.prompt,
  ...TOKEN_PARTS.completion,
]);
const amounts = (max: bigint, meters: readonly string[]) =>
  fc.dictionary(fc.constantFrom(...meters), fc.bigInt({ min: 0n, max }), { maxKeys: meters.length });
const uses = fc.oneof(amounts(2_000_000n, METERS), amounts(2_000n, [...TOKENS]));

test('the parts of any price and any use are all of the charge, also of a capped one', () => {
  fc.assert(
    fc.property(amounts(50_000_000n, METERS), uses, fc.nat(100), (rates, usage, percent) => {
      const whole = cost(rates, usage);
      const parts = costOfParts({ rates }, usage, null);
      const { prompt, completion, other } = partsOfCharge(whole, parts);
      expect([prompt, completion]).toEqual([parts.promptCost, parts.completionCost]);
      expect(prompt + completion + other).toBe(whole);
      // Nothing but tokens was used: the micro-USD that is rounded up belongs to them.
      if (Object.keys(usage).every((meter) => TOKENS.has(meter))) expect(other).toBe(0n);
      const charged = (whole * BigInt(percent)) / 100n;
      const capped = partsOfCharge(charged, parts);
      expect(capped.prompt + capped.completion + capped.other).toBe(charged);
      for (const part of Object.values(capped)) expect(part).toBeGreaterThanOrEqual(0n);
    }),
    { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 100_000 : 2_000 },
  );
});

const spine = spineOfFile(() => {
  const url = '{provider}';
  return {
    toml: UNHURRIED + modelBlock({ name: 'odd/model', provider: 'Odd', url, prompt: 0.37, completion: 1.13 }),
  };
});

interface Shown {
  readonly cost: number;
  readonly cost_details: Readonly<Record<string, number | string>>;
}

/** Every object of an answer that tells a cost with its parts. */
function* shownIn(value: unknown): Generator<Shown> {
  if (typeof value !== 'object' || value === null) return;
  if ('cost_details' in value) yield value as Shown;
  for (const inner of Object.values(value)) yield* shownIn(inner);
}

const micro = (usd: number | string | undefined) => BigInt(Math.round(Number(usd ?? 0) * 1e6));

test.each(WIRES.map((wire) => [wire.name, wire] as const))('%s shows parts that add up', async (_name, wire) => {
  for (const tokens of [1, 2, 3, 7, 20]) {
    const asked = { model: 'odd/model', ...wire.ask(`hello !tokens:${tokens}`, 50) };
    const { path, body } = requestOf(wire, asked);
    const response = await fetch(spine.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const shown = [...shownIn(await response.json())];
    expect(shown.length).toBeGreaterThan(0);
    for (const { cost: whole, cost_details: details } of shown) {
      expect(micro(details['charged_usd'])).toBe(micro(whole));
      const parts = ['upstream_inference_prompt_cost', 'upstream_inference_completions_cost', 'other_usd'];
      expect(parts.reduce((sum, name) => sum + micro(details[name]), 0n)).toBe(micro(whole));
    }
  }
  expect(await spine.faults()).toEqual([]);
});
