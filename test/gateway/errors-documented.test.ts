import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES, HTTP_ERRORS } from '#gateway';

const rows = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  .split('\n')
  .map((line) => /^\| `(\w+)` \| (\d+) \| `(\w+)` \|/.exec(line))
  .filter((match) => match !== null)
  .map(([, code, status, type]) => ({ code, status: Number(status), type }));

test('docs/errors.md lists exactly the errors of the code, with their status and type', () => {
  expect(rows).toEqual(ERROR_CODES.map((code) => ({ code, ...HTTP_ERRORS[code] })));
});
