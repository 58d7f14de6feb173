import type { Offer } from '#catalog';
import { toCall } from '../../src/openai/call/chat-to-call.ts';
import type { ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { expect, it } from 'vitest';
import { makeOffer } from './support/offers.ts';

const call = (asked: Partial<ChatBody> = {}) =>
  toCall(
    { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], max_tokens: 8000, ...asked },
    {
      caller: { account: 'tollgate:local:dev', key: null, wallet: null },
      requestId: 'req-1',
      headers: {},
      now: 0,
      replyBytesMax: 1e6,
      receipts: 'on-request',
    },
  );
type Call = ReturnType<typeof call>;
const boundless = () => makeOffer({ model: { maxOutputTokens: null } });
const sentBy = ({ adapter }: Call, offer: Offer) => {
  const { max_tokens, max_completion_tokens } = JSON.parse(adapter.request(offer).body as string) as Record<
    string,
    unknown
  >;
  return { max_tokens, max_completion_tokens };
};
const refuse = ({ adapter }: Call, offer: Offer, answer: object) =>
  adapter.reform(offer, 400, Buffer.from(JSON.stringify(answer)));
/** What OpenAI answers to a field that it does not know. */
const unknown = (name: string) => ({
  error: { message: `Unknown parameter: '${name}'.`, type: 'invalid_request_error', param: name },
});

it.each([
  'max_tokens must be less than or equal to 1',
  'Invalid max_tokens value, the valid range of max_tokens is [1, 1]',
  'max_tokens_of_mine',
  'max_tokens is not supported',
  'Unknown parameter: max_tokens',
])('a service that repeats the name of a field, %j, changes nothing for others', (name) => {
  const offer = boundless();
  const attacker = call({ [name]: 1 });
  sentBy(attacker, offer);
  refuse(attacker, offer, unknown(name));
  expect(sentBy(call(), offer)).toEqual({ max_tokens: 8000 });
});

it('a field inside of a message that has the name of the cap changes nothing for others', () => {
  const offer = boundless();
  const attacker = call({ messages: [{ role: 'user', content: 'hi', max_tokens: 1 }] });
  sentBy(attacker, offer);
  refuse(attacker, offer, {
    detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0, 'user', 'max_tokens'] }],
  });
  expect(sentBy(call(), offer)).toEqual({ max_tokens: 8000 });
});

it('a call that speaks of the cap in its words is itself sent in the form that is taken', () => {
  const offer = boundless();
  const curious = call({ messages: [{ role: 'user', content: 'What is max_tokens?' }] });
  sentBy(curious, offer);
  expect(refuse(curious, offer, unknown('max_tokens'))).toBe(true);
  expect(sentBy(curious, offer)).toEqual({ max_completion_tokens: 8000 });
  const words =
    'max_completion_tokens is too large: 8000. This model supports at most 300 completion tokens, whereas you provided 8000.';
  expect(refuse(curious, offer, { error: { message: words } })).toBe(true);
  expect(sentBy(curious, offer)).toEqual({ max_completion_tokens: 300 });
  expect(sentBy(call(), offer)).toEqual({ max_tokens: 8000 });
  // The words were in this request too, so the forms were what was wrong.
  curious.adapter.accepted(offer);
  expect(sentBy(call(), offer)).toEqual({ max_completion_tokens: 300 });
});
