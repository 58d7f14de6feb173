import { expect, test } from 'vitest';
import { load } from '../../server/config/load.ts';

const SAYS_NO = '[webhooks]\nallow_private = false\n';

test('receivers on this machine are for development, where nothing else is said', () => {
  expect(load('', { mode: 'production' }).webhooks.allowPrivate).toBe(false);
  expect(load('', { mode: 'development' }).webhooks.allowPrivate).toBe(true);
  expect(load(SAYS_NO, { mode: 'development' }).webhooks.allowPrivate).toBe(false);
});
