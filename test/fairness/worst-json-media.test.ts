import { afterAll, beforeAll } from 'vitest';
import { MEDIA_ROWS, mediaToml, mediaUsual } from './support/worst/media-rows.ts';
import { startWorld, testRows, type World } from './support/worst/world.ts';

/* The worst JSON from providers of sound, images, videos and realtime sessions. */

let world: World;
beforeAll(async () => {
  world = await startWorld(mediaToml, mediaUsual);
});
afterAll(async () => world?.stop());

testRows(MEDIA_ROWS, () => world);
