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

it('at level debug a refused request is found by its id, also if the level came with a reload', async () => {
  spine = await startSpine({ mode: 'production' });
  const level = async (name: string) => {
    spine.writeFile(`[server]\nlog_level = "${name}"\n`);
    const headers = { authorization: `Bearer ${spine.adminKey}` };
    expect((await fetch(`${spine.origin}/admin/v1/reload`, { method: 'POST', headers })).status).toBe(200);
  };
  await level('debug');
  const ask = { model: 'test/model', messages: [{ role: 'user', content: 'hi' }] };
  const answers = [
    await spine.post('/chat/completions', ask, { authorization: 'Bearer svc-sk-v2-mistyped' }),
    await spine.post('/chat/completions', { ...ask, model: 'test/modle' }),
    await spine.post('/chat/completions', { ...ask, messages: 5 }),
    await spine.get('/modles'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([401, 404, 400, 404]);
  await expect.poll(refused).toHaveLength(4);
  const lines = spine.logs.filter((line) => line.includes('"refused"')).map((line) => JSON.parse(line) as object);
  for (const [index, answer] of answers.entries())
    expect.soft(lines[index]).toMatchObject({ request_id: answer.headers.get('x-request-id'), status: answer.status });
  await level('info');
  await spine.get('/modles');
  expect(refused()).toHaveLength(4);
});
