import { afterEach, expect, it } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';

let spine: Spine;
afterEach(() => spine.stop());

const refused = () =>
  spine.logs.filter((line) => /^[\d:]{8} {2}4\d\d|refused/.test(line)).map((line) => line.trim().slice(10));
const chat = '/api/v1/chat/completions';

it('a mistyped key, model or address has a line in development, and a failed call has only its own', async () => {
  spine = await startSpine({ mode: 'development' });
  const ask = { messages: [{ role: 'user', content: 'hi' }] };
  await spine.post(
    '/chat/completions',
    { model: 'test/model', ...ask },
    { authorization: 'Bearer svc-sk-dev-mistyped' },
  );
  await spine.post('/chat/completions', { model: 'test/modle', ...ask });
  await spine.get('/modles?secret=1');
  await expect
    .poll(refused)
    .toEqual([
      `401  POST ${chat}  Invalid API key`,
      expect.stringMatching(`^404  POST ${chat}  Model not found: test/modle`),
      expect.stringMatching('^404  GET /api/v1/modles  No such endpoint'),
    ]);
});

it('strangers do not fill the log of production', async () => {
  spine = await startSpine({ mode: 'production' });
  await spine.get('/modles');
  expect(refused()).toEqual([]);
});
