import { describe, expect, it } from 'vitest';
import { ChatReplyReader } from '../../src/openai/chat/reply/chat-reply-reader.ts';
import { CONTEXT } from './support/replies.ts';

const failure = (status: number, body: string, headers: Record<string, string> = {}) => {
  const reader = new ChatReplyReader(CONTEXT);
  reader.head(status, headers);
  return reader.failure(status, Buffer.from(body));
};

describe('an error status of a provider', () => {
  it.each([400, 413, 422, 451])('%i refuses the request: it is not retried and its words are shown', (status) => {
    expect(failure(status, '{"error":{"message":"too\\u0000 long\\nreally"}}')).toMatchObject({
      status,
      retryable: false,
      attributedTo: 'request',
      detail: 'too long really',
    });
  });

  it.each([401, 402, 403, 404, 408, 409, 500, 502, 503])(
    '%i is the provider’s failure: another may do better, and its words stay here',
    (status) => {
      const found = failure(status, '{"error":{"message":"Incorrect API key provided: sk-secret"}}', {
        'retry-after': '7',
      });
      expect(found).toMatchObject({ status, retryable: true, attributedTo: 'provider', detail: null, retryAfterS: 7 });
      expect(found.message).not.toContain('secret');
      expect((found.cause as Error).message).toContain('Incorrect API key');
    },
  );

  it.each([
    ['{"error":"plain"}', 'plain'],
    ['{"message":"top"}', 'top'],
    ['{"detail":"fastapi"}', 'fastapi'],
    ['{"error":{"code":1}}', null],
    ['null', null],
    ['<html>', null],
    ['', null],
    [`{"error":"${'x'.repeat(5_000)}"}`, 'x'.repeat(300)],
  ])('says %s', (body, words) => {
    expect(failure(400, body).detail).toBe(words);
  });
});
