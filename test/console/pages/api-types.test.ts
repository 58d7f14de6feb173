import { beforeAll, expect, test } from 'vitest';
import { readTypes, readTypeSource, type TypeSource } from '../../../scripts/web-types.ts';

// The web pages take their types of the API from /openapi.json. The deep run also makes the file again.

let source: TypeSource;
beforeAll(async () => {
  source = await readTypeSource();
});

test('web/src/api/schema.d.ts is made of the document as it is; `npm run docs` writes it', () => {
  expect(readTypes().slice(0, readTypes().indexOf('\n') + 1)).toBe(source.head);
});

test('a body that may be null may be missing, as in the requests of the pages', () => {
  const { paths } = JSON.parse(source.text) as {
    readonly paths: Readonly<
      Record<string, { readonly post?: { readonly requestBody: { readonly required?: true } } }>
    >;
  };
  for (const path of ['/api/v1/deposits/claim', '/api/v1/withdrawals/{id}/cancel'])
    expect(paths[path]!.post!.requestBody, path).not.toHaveProperty('required');
  expect(paths['/api/v1/withdrawals']!.post!.requestBody.required).toBe(true);
});
