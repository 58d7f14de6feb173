import { destination } from 'pino';
import { expect, test } from 'vitest';
import { newDataDirectory } from '../../support/data-directory.ts';
import { join } from 'node:path';
import { checkedWith } from '../../support/checked-with.ts';

// createLogger replaces `flushSync` of the destination, so that a log that cannot be written does not keep a process
// from its end (`test/program/cli/serve.test.ts`). So pino must call this method of the object when a process ends.

checkedWith('pino', '10.4.0');

test('pino ends a destination by the flushSync that the object has', () => {
  const before = new Set(process.listeners('exit'));
  const out = destination({ dest: join(newDataDirectory(), 'log'), sync: false });
  let flushed = 0;
  out.flushSync = () => void flushed++;
  for (const listener of process.listeners('exit')) if (!before.has(listener)) listener(0);
  expect(flushed).toBe(1);
  out.destroy();
});
