import { expect, test } from 'vitest';
import { readAddress } from '../../../src/a2a/protocol/parse-request.ts';

test.each(['/'.repeat(10_000), 'a/'.repeat(5_000), 'a/tasks/'.repeat(1_000)])(
  'is looked up a few times, however long it is',
  (path) => {
    for (const verb of ['GET', 'POST', 'DELETE']) {
      let lookups = 0;
      readAddress(verb, `/${path}`, null, () => {
        lookups += 1;
        return false;
      });
      expect(lookups).toBeLessThan(10);
    }
  },
);
