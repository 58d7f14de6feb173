import { type HttpTarget, IMAGE_PATHS, type Service, VIDEOS_PATH } from '#config';
import { ask } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

type MediaService = Extract<Service, { primitive: 'image' | 'video' }>;

/**
 * Checks that the API of an image or video service exists and accepts the key, at each path that the gateway calls.
 * Generating would cost money, so each path gets an empty request, which the API refuses.
 */
export function mediaChecks(service: MediaService, target: HttpTarget): readonly Check[] {
  const { primitive, name } = service;
  const { wire = 'openai', edits = false } = service.media.imageApi ?? {};
  const { make, edit } = primitive === 'video' ? { make: VIDEOS_PATH, edit: '' } : IMAGE_PATHS[wire];
  return [
    {
      kind: primitive,
      name,
      async run() {
        const { status } = await ask({ method: 'GET', url: `${target.url}/models`, apiKey: target.apiKey });
        mustTakeKey(status);
        if (status >= 500) throw new ProbeFailure(`answers with status ${status}`);
        const found = await mustHave(target, make, 'generated');
        return status < 400
          ? `answers, and accepts the key; ${found}`
          : `is reached; it has no list of models to try the key with (status ${status}); ${found}`;
      },
    },
    ...(edits
      ? [
          {
            kind: primitive,
            name: `${name}, edits`,
            run: () => mustHave(target, edit, 'edited'),
          },
        ]
      : []),
  ];
}

function mustTakeKey(status: number): void {
  if (status === 401 || status === 403) throw new ProbeFailure(`does not accept the key: status ${status}`);
}

/** Describes the answer to an empty request. `done` is the work that was not done, such as `generated`. */
async function mustHave({ url, apiKey }: HttpTarget, path: string, done: string): Promise<string> {
  const { status } = await ask({ method: 'POST', url: url + path, apiKey, body: {} });
  mustTakeKey(status);
  if (status === 404 || status === 405)
    throw new ProbeFailure(`has no POST ${path} (status ${status}). Check params.api_base`);
  if (status >= 200 && status < 300)
    return `it has ${path}; it took an empty request (status ${status}) and may have charged for it`;
  if (status < 400)
    throw new ProbeFailure(`answers an empty POST ${path} with status ${status}; right is a refusal such as 400`);
  // Some APIs fail on an empty request but answer real ones.
  if (status >= 500) return `it has ${path}; it answers an empty request with status ${status}`;
  return `it has ${path}; nothing was ${done}`;
}
