import { createHash } from 'node:crypto';
import type { Statement } from '#store';

/** Makes a statement from SQL text in a test. */
export function adHoc(text: string): Statement {
  return { name: `ad-hoc-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`, text };
}
