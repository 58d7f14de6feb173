import { afterEach, expect, it } from 'vitest';
import { startGateway } from './support/gateway.ts';
import { makeOffer } from './support/offers.ts';
import { USAGE, usualStream } from './support/replies.ts';

let gateway: Awaited<ReturnType<typeof startGateway>>;
afterEach(() => gateway.close());

const WHOLE = JSON.stringify({
  choices: [{ index: 0, message: { content: 'hello' }, finish_reason: 'stop' }],
  usage: USAGE,
});
const droppedOf = async (more: object) => {
  gateway = await startGateway({
    offer: makeOffer({ model: { forward: ['listed'] } }),
    reply: (_request, call) => ({ chunks: [call.stream ? usualStream() : WHOLE] }),
  });
  const body = { model: 'acme/small', messages: [{ role: 'user', content: 'hi' }], ...more };
  const response = await gateway.post(body);
  expect(response.status, await response.text()).toBe(200);
  return response.headers.get('x-tollgate-dropped');
};

it.each([false, true])('names the fields that the provider did not get (stream: %s)', async (stream) => {
  expect(await droppedOf({ stream, seed: 1, listed: 1, n_predict: 5, odd: 1, session_id: 's' })).toBe('n_predict, odd');
});

it('is absent where all went', async () => {
  expect(await droppedOf({ seed: 1, listed: 1 })).toBeNull();
});

it('holds nothing that a header cannot, and is never long', async () => {
  const odd = { 'a\r\nx-evil: 1': 1, 'é,"': 1, '\ud800': 1, '': 1, ['n'.repeat(200)]: 1 };
  const [evil, accented, lone, empty, long] = (await droppedOf(odd))!.split(', ');
  expect([evil, accented, lone, empty]).toEqual(['a%0D%0Ax-evil%3A%201', '%C3%A9%2C%22', '%EF%BF%BD', '']);
  expect(long).toBe('n'.repeat(96));
  await gateway.close();
  const many = await droppedOf(Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`field_${n}`, n])));
  expect(many!.split(', ')).toHaveLength(33);
  expect(many!.endsWith(', ...')).toBe(true);
});
