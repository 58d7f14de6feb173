import { expect, test } from 'vitest';
import { spineOfFile } from '../support/of-file.ts';

// A body of a media type that its route does not take is refused with the types that the route takes.

const spine = spineOfFile();

const JSON_WORDS = 'JSON with content-type: application/json';
const FORM_WORDS = 'a form with content-type: multipart/form-data';

test.each([
  ['/v1/chat/completions', 'text/xml', JSON_WORDS],
  ['/v1/audio/speech', 'text/xml', JSON_WORDS],
  ['/v1/audio/transcriptions', 'text/xml', FORM_WORDS],
  ['/v1/audio/translations', 'text/xml', FORM_WORDS],
  ['/v1/files', 'text/xml', FORM_WORDS],
  ['/v1/files', 'application/json', FORM_WORDS],
  ['/v1/videos', 'text/xml', `${FORM_WORDS}, or as ${JSON_WORDS}`],
  ['/v1/images/edits', 'text/xml', `${FORM_WORDS}, or as ${JSON_WORDS}`],
  ['/api/v1/image/edit', 'text/xml', `${FORM_WORDS}, or as ${JSON_WORDS}`],
  ['/api/v1/video/queue', 'text/xml', JSON_WORDS],
])('POST %s with %s', async (path, type, words) => {
  const reply = await fetch(spine.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': type },
    body: '{}',
  });
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({
    error: { message: `Send the body as ${words}`, type: 'invalid_request' },
  });
});
