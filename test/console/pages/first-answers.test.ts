import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFirstAnswers } from '../../../src/console/pages/web/page-document.ts';

// What a document brings along of the API, so that its page waits for no request.

let asked: { readonly url: string; readonly accept: string | undefined }[];
let now: number;
let server: FastifyInstance;
let firstAnswers: ReturnType<typeof createFirstAnswers>;
beforeEach(() => {
  asked = [];
  now = 0;
  server = Fastify();
  server.addHook('onRequest', async ({ url, headers: { accept } }) => void asked.push({ url, accept }));
  server.get('/small', async () => ({ data: ['one', asked.length] }));
  server.get('/other', async () => ({ data: [] }));
  server.get('/large', async () => ({ data: 'x'.repeat(8_192) }));
  server.get('/broken', async () => {
    throw new Error('no answer');
  });
  firstAnswers = createFirstAnswers(server, () => now);
});
afterEach(() => server.close());

test('the first answer is in the document, and the browser is told of the others', async () => {
  const found = await firstAnswers(['/small', '/other', '/large']);
  expect(found).toEqual({ early: ['/other', '/large'], answers: { '/small': { data: ['one', 1] } } });
  expect(asked).toEqual([{ url: '/small', accept: 'application/json' }]);
});

test.each(['/large', '/broken', '/nowhere'])('%s is asked for by the browser', async (path) => {
  expect(await firstAnswers([path, '/other'])).toEqual({ early: [path, '/other'] });
});

test('a page that asks for nothing gets nothing', async () => {
  expect(await firstAnswers([])).toEqual({ early: [] });
  expect(asked).toEqual([]);
});

test('visitors of one second get the same answer, and later ones a new one', async () => {
  const both = await Promise.all([firstAnswers(['/small']), firstAnswers(['/small'])]);
  expect(both.map(({ answers }) => answers)).toEqual([{ '/small': { data: ['one', 1] } }, both[0].answers]);
  now = 999;
  expect((await firstAnswers(['/small'])).answers).toEqual({ '/small': { data: ['one', 1] } });
  now = 1_000;
  expect((await firstAnswers(['/small'])).answers).toEqual({ '/small': { data: ['one', 2] } });
});

test('the answers of a few hundred pages are kept at once, the oldest of them not', async () => {
  for (let page = 0; page < 257; page += 1) await firstAnswers([`/small?page=${page}`]);
  const before = asked.length;
  await firstAnswers(['/small?page=256']);
  expect(asked).toHaveLength(before);
  await firstAnswers(['/small?page=0']);
  expect(asked).toHaveLength(before + 1);
});
