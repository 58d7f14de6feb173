import type { HttpTarget, Service } from '#config';
import { isOfKind, KINDS_OF_MODELS } from '#config/model-kinds';
import { ask, type Check, ProbeFailure, wordsOf } from './ask.ts';

/**
 * Checks that the routes of a model that is called at routes of its own are there and take the key. They get a request
 * without anything to work on, because what a model takes has names of its vendor's, and work costs.
 */
export function kindChecks(
  { name, model: facts }: Pick<Extract<Service, { primitive: 'model' }>, 'name' | 'model'>,
  { url, apiKey }: HttpTarget,
): readonly Check[] {
  return KINDS_OF_MODELS.flatMap(
    ([
      kind,
      {
        paths: [path],
      },
    ]): Check[] => {
      if (!isOfKind(facts, kind)) return [];
      return [
        {
          kind: 'model',
          name: `${name}, ${kind}`,
          async run() {
            const { status, text } = await ask({
              method: 'POST',
              url: `${url}${path}`,
              apiKey,
              body: { model: facts.upstreamModel },
            });
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
    },
  );
}

const REFUSED: ReadonlySet<number> = new Set([400, 415, 422]);
