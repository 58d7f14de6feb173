import { expect, test } from 'vitest';
import { toErrorReply } from '../../../src/providers/ai-sdk/worker/fault.ts';
import { RequestFiles } from '../../../src/providers/ai-sdk/worker/load-file.ts';
import { errorOfAttempt } from '../../../src/gateway/call/attempt-error.ts';
import type { Offer } from '#catalog';
import { toFailure } from '#wire';

test('the refusal of a package whose files are shared out is read as busy, and blames no provider', async () => {
  const left = new AbortController();
  const load = () => Promise.resolve(new Response(Buffer.alloc(20 * 1024 * 1024)));
  const filesOf = (consumer: string) => new RequestFiles(load, { signal: left.signal, consumer });
  const url = new URL('https://files.example/one');
  await filesOf('one').load(url);
  await filesOf('one').load(url);
  const thrown = await filesOf('one')
    .load(url)
    .catch((error: unknown) => error);
  left.abort();
  const { status, body } = toErrorReply(thrown);
  expect(status).toBe(429);
  const told = (error: object) => toFailure(status, Buffer.from(JSON.stringify({ error })), undefined);
  const failure = told(body.error);
  expect(failure).toMatchObject({ attributedTo: 'account', busy: 'rate', retryable: true, retryAfterS: 1 });
  expect(errorOfAttempt(failure, { provider: { name: 'P' } } as Offer, { stream: false })).toMatchObject({
    code: 'rate_limit_exceeded',
    message: expect.stringMatching(/^Provider P limits .*leave too few/) as string,
    retryAfterS: 1,
  });
  // The limit of a vendor is its own.
  expect(told({ message: 'slow down', code: 'rate_limit_exceeded' })).toMatchObject({ attributedTo: 'provider' });
});
