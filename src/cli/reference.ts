import { randomUUID } from 'node:crypto';
import { say } from './target-words.ts';

/**
 * The operator's reference for an action that must happen only once. Without one, creates a reference and prints it.
 */
export function referenceOr(given: string | undefined): string {
  if (given !== undefined) return given;
  const reference = `cli-${randomUUID()}`;
  say(`Its reference is ${reference}. If this breaks off, repeat it with --reference ${reference}: it is done once.`);
  return reference;
}
