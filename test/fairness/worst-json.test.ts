import { afterAll, beforeAll, expect, it } from 'vitest';
import { BILLED_PATHS } from '../peers/routes.ts';
import { MODEL_PATHS, MODEL_ROWS, modelToml, modelUsual } from './support/worst/model-rows.ts';
import { startWorld, testRows, type World } from './support/worst/world.ts';

/* The worst JSON from a model, at every route that is billed: no turn of the event loop is long. */

/** Billed routes that are tried elsewhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  '/api/v1beta/models/{model}:batchEmbedContents': 'the reader of embedContent',
  '/api/v1/audio/transcriptions': 'worst-json-media',
  '/api/v1/audio/translations': 'the reader of transcriptions',
  '/api/v1/responses/compact': 'the reader of /api/v1/responses',
  '/api/v2/rerank': 'the reader of /api/v1/rerank',
  '/api/v1/rpc': 'worst-json-tools, and it leads to the other routes',
  '/api/v1/image/*': 'worst-json-media',
  '/api/v1/images*': 'worst-json-media',
  '/api/v1/video*': 'worst-json-media',
  '*mcp*': 'worst-json-tools',
  '*a2a*': 'worst-json-tools',
};

let world: World;
beforeAll(async () => {
  world = await startWorld(modelToml, modelUsual);
});
afterAll(async () => world?.stop());

it('every billed route has its worst replies', () => {
  const asked = MODEL_PATHS.map((path) => path.replace(/\?.*/, '').replace(/models\/.*:/, 'models/{model}:'));
  const judged = Object.keys(ELSEWHERE).map((glob) => new RegExp(`^${glob.split('*').map(RegExp.escape).join('.*')}$`));
  const missing = BILLED_PATHS.filter((path) => !asked.includes(path) && !judged.some((one) => one.test(path)));
  expect(missing).toEqual([]);
});

testRows(MODEL_ROWS, () => world);
