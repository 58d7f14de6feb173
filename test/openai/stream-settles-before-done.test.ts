import { afterEach, expect, it } from 'vitest';
import { gate, startGateway } from './support/gateway.ts';
import { usualStream } from './support/replies.ts';

let close: () => Promise<unknown>;
afterEach(() => close());

const ask = { model: 'acme/small', stream: true, messages: [{ role: 'user', content: 'hi' }] };

it('sends text as it comes, and neither finish nor [DONE] before the settlement', async () => {
  const settlement = gate();
  const [head, ...rest] = usualStream().split(/(?<=\n\n)/);
  const gateway = await startGateway({
    reply: () => ({
      chunks: (async function* () {
        yield head!;
        yield rest.join('');
      })(),
    }),
    settle: () => settlement.opened,
  });
  close = gateway.close;

  const response = await gateway.post(ask);
  expect(response.status).toBe(200);
  const body = response.body!.pipeThrough(new TextDecoderStream()).getReader();

  let text = '';
  while (!text.includes('🌍')) text += (await body.read()).value!;
  expect(text).not.toContain('"stop"');
  expect(text).not.toContain('usage');
  expect(text).not.toContain('[DONE]');
  expect(gateway.state.settled).toEqual([]);

  settlement.open();
  for (let read = await body.read(); !read.done; read = await body.read()) text += read.value;
  expect(text).toContain('"stop"');
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
});
