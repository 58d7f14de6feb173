import { type AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/a2a/cards/sign-card.ts';
import { plainParams } from '../../../src/a2a/cards/card-content.ts';

test('writes the example of RFC 8785 section 3.2 as section 3.2.3 has it', () => {
  const value = JSON.parse(
    '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", "literals": [null, true, false]}',
  ) as unknown;
  expect(canonicalJson(value)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

test('sorts members by UTF-16 code units (RFC 8785 section 3.2.3)', () => {
  const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
  const keys = [...canonicalJson(value).matchAll(/:(\d)/g)].map(([, digit]) => Number(digit));
  expect(keys).toEqual([2, 4, 6, 7, 1, 5, 3]);
});

test.each([
  [0, '0'],
  [-0, '0'],
  [5e-324, '5e-324'],
  [-1.7976931348623157e308, '-1.7976931348623157e+308'],
  [9007199254740992, '9007199254740992'],
  [295147905179352830000, '295147905179352830000'],
  [1e23, '1e+23'],
  [0.000001, '0.000001'],
])('writes %d as RFC 8785 appendix B does', (number, text) => {
  expect(canonicalJson(number)).toBe(text);
});

test.each([Number.NaN, Number.POSITIVE_INFINITY, '\ud800', { '\udc00': 1 }, undefined, 1n])(
  'refuses what has no canonical form: %o',
  (value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  },
);

test("is what the SDK's canonicaliser makes of a card whose parameters were cleaned, whatever they were", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.string({ minLength: 1, unit: 'grapheme' }), (value, name) => {
      const params = plainParams({ value });
      const card = {
        name,
        capabilities: { streaming: false, extensions: [{ uri: 'urn:x', ...(params ? { params } : {}) }] },
      };
      expect(canonicalJson(card)).toBe(canonicalizeAgentCard(card as unknown as AgentCard));
    }),
  );
});
