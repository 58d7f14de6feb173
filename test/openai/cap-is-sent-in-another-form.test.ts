import type { Offer } from '#catalog';
import { toCall } from '../../src/openai/call/chat-to-call.ts';
import type { ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { expect, it } from 'vitest';
import { makeOffer } from './support/offers.ts';

const call = (asked: Partial<ChatBody> = {}) =>
  toCall(
    { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], ...asked },
    {
      caller: { account: 'tollgate:local:dev', key: null, wallet: null },
      requestId: 'req-1',
      headers: {},
      now: 0,
      replyBytesMax: 1e6,
      receipts: 'on-request',
    },
  );
const boundless = () => makeOffer({ model: { maxOutputTokens: null } });
type Call = ReturnType<typeof call>;
const capsOf = ({ adapter }: Call, offer: Offer) => {
  const { max_tokens, max_completion_tokens } = JSON.parse(adapter.request(offer).body as string) as Record<
    string,
    unknown
  >;
  return { max_tokens, max_completion_tokens };
};
const lockedOf = ({ request }: Call, offer: Offer) => (request.estimate(offer) as { completion: bigint }).completion;
const refuse = ({ adapter }: Call, offer: Offer, message: string) =>
  adapter.reform(offer, 400, Buffer.from(JSON.stringify({ error: { message } })));
const tooLarge = (asked: number, most: number) =>
  `max_tokens is too large: ${asked}. This model supports at most ${most} completion tokens, whereas you provided ${asked}.`;

it('an offer that refuses whatever it is sent is sent four forms', () => {
  const offer = boundless();
  const one = call({ max_tokens: 8000 });
  const forms = [];
  for (let asked = 8000; ; asked--) {
    forms.push(capsOf(one, offer));
    if (!refuse(one, offer, tooLarge(asked, asked - 1))) break;
  }
  expect(forms.map(({ max_tokens }) => max_tokens)).toEqual([8000, 7999, 7998, 7997]);
});

it('an offer that refuses both names is sent none', () => {
  const offer = boundless();
  const one = call({ max_tokens: 7 });
  expect(refuse(one, offer, "Unknown parameter: 'max_tokens'.")).toBe(true);
  expect(capsOf(one, offer)).toEqual({ max_completion_tokens: 7 });
  expect(refuse(one, offer, "Unknown parameter: 'max_completion_tokens'.")).toBe(true);
  expect(capsOf(one, offer)).toEqual({});
  // There is no cap left to refuse.
  expect(refuse(one, offer, "Unknown parameter: 'max_tokens'.")).toBe(false);
});

it('what was learnt lowers what later calls lock; what a call had locked before is not exceeded', () => {
  const offer = boundless();
  const [early, asks, later] = [call(), call({ max_tokens: 5000 }), call({ max_tokens: 6000 })];
  const locked = [lockedOf(early, offer), lockedOf(asks, offer)];
  expect(refuse(asks, offer, tooLarge(5000, 300))).toBe(true);
  expect(capsOf(asks, offer)).toEqual({ max_tokens: 300 });
  expect(asks.adapter.maxTokens).toBe(300);
  // A refusal alone teaches nothing.
  expect(lockedOf(call({ max_tokens: 6000 }), offer)).toBe(6000n);
  asks.adapter.accepted(offer);
  // It was locked without a cap, and is sent without one.
  expect(capsOf(early, offer)).toEqual({});
  expect([lockedOf(early, offer), lockedOf(asks, offer)]).toEqual(locked);
  expect(lockedOf(later, offer)).toBe(300n);
  expect(capsOf(later, offer)).toEqual({ max_tokens: 300 });
});

it('what fits beside one prompt says nothing of another', () => {
  const offer = boundless();
  const [one, other] = [call({ max_tokens: 8000 }), call({ max_tokens: 8000 })];
  const words =
    "This model's maximum context length is 4096 tokens. However, you requested 8096 tokens (96 in the messages, 8000 in the completion).";
  expect(refuse(one, offer, words)).toBe(true);
  expect(capsOf(one, offer)).toEqual({ max_tokens: 4000 });
  expect(capsOf(other, offer)).toEqual({ max_tokens: 8000 });
});

it('another offer is asked as if nothing had been refused', () => {
  const [first, second] = [boundless(), boundless()];
  const one = call({ max_tokens: 5000 });
  capsOf(one, first);
  refuse(one, first, tooLarge(5000, 300));
  expect(capsOf(one, second)).toEqual({ max_tokens: 5000 });
});
