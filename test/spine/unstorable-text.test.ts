import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freshDatabase } from '../support/fresh-database.ts';
import { startSpine, type Spine } from '../support/spine.ts';

// PostgreSQL keeps no text with U+0000. Whoever sends one is told so; it is no failure of ours.

let database: Awaited<ReturnType<typeof freshDatabase>>;
let spine: Spine;
beforeAll(async () => {
  database = await freshDatabase(inject('postgresUrl'));
  spine = await startSpine({ databaseUrl: database.url });
});
afterAll(async () => {
  await spine.stop();
  await database.drop();
});

test('a NUL in an id or a name is a request that is not valid', async () => {
  const answers = await Promise.all([
    spine.get('/generation?id=a%00b'),
    spine.post('/keys', { name: 'a\u0000b' }),
    fetch(`${spine.url}/keys/a%00b`, { method: 'DELETE', headers: { authorization: `Bearer ${spine.key}` } }),
  ]);
  for (const answer of answers) {
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request' } });
  }
  expect(await spine.faults()).toEqual([]);
});
