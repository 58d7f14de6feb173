import { randomUUID } from 'node:crypto';
import { say } from './target-words.ts';

/** The operator's name of something that is done once; a new one, which is told, where none was given. */
export function referenceOr(given: string | undefined): string {
  if (given !== undefined) return given;
  const reference = `cli-${randomUUID()}`;
  say(`Its reference is ${reference}. If this breaks off, repeat it with --reference ${reference}: it is done once.`);
  return reference;
}
