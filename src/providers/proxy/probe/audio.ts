import type { HttpTarget } from '#config';
import { ask, type Check, ProbeFailure, wordsOf } from './ask.ts';

/** The routes that a model answers at, by its kind of output. */
const PATHS = new Map([
  ['speech', '/audio/speech'],
  ['transcription', '/audio/transcriptions'],
]);

/**
 * Checks that the routes of a model for audio are there and take the key. They get a request without anything to speak
 * or to transcribe, because each voice has a name of its vendor's, and sound costs.
 */
export function audioChecks(
  { name, outputModalities }: { readonly name: string; readonly outputModalities: readonly string[] },
  { url, apiKey }: HttpTarget,
  model: string,
): readonly Check[] {
  return outputModalities.flatMap((output): Check[] => {
    const path = PATHS.get(output);
    if (path === undefined) return [];
    return [
      {
        kind: 'model',
        name: `${name}, ${output}`,
        async run() {
          const { status, text } = await ask({ method: 'POST', url: `${url}${path}`, apiKey, body: { model } });
          const words = wordsOf(text);
          // Most services refuse what is missing with 400 or 422, and some the form of the body with 415.
          if (REFUSED.has(status) || status < 300)
            return `answers at ${path}: it refuses an empty request with ${status}`;
          throw new ProbeFailure(
            `answers an empty request at ${path} with status ${status}${words === '' ? '' : `: ${words}`}`,
          );
        },
      },
    ];
  });
}

const REFUSED: ReadonlySet<number> = new Set([400, 415, 422]);
