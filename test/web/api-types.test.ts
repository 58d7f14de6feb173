import { expect, test } from 'vitest';
import { readTypes, readTypeSource } from '../../scripts/web-types.ts';

// The web pages take their types of the API from /openapi.json. The deep run also makes the file again.

test('web/src/api/schema.d.ts is made of the document as it is; `npm run docs` writes it', async () => {
  const { head } = await readTypeSource();
  expect(readTypes().slice(0, readTypes().indexOf('\n') + 1)).toBe(head);
});
