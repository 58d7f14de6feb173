import { afterEach, beforeEach, inject, it } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../../support/fresh-database.ts';
import { makePlace, type Place } from './tollgate.ts';
import { endUnread } from './unread-log.ts';

// A gateway of one process does so every day: `serve.test.ts`.

let place: Place;
let database: FreshDatabase;
beforeEach(async () => {
  place = await makePlace();
  database = await freshDatabase(inject('postgresUrl'));
});
afterEach(async () => {
  await place.clear();
  await database.drop();
});

it('tollgate serve --workers 2 ends although nobody reads its log any more', () =>
  endUnread(place, ['--workers', '2'], { DATABASE_URL: database.url }));
