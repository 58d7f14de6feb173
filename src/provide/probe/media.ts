import type { HttpTarget, Service } from '#config';
import { ask } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

type MediaService = Extract<Service, { primitive: 'image' | 'video' }>;

/** Paths of each API for images, and for edits of images. */
const IMAGE_PATHS = {
  openai: { make: '/images/generations', edit: '/images/edits' },
  tollgate: { make: '/image/generate', edit: '/image/edit' },
  openrouter: { make: '/images', edit: '/images' },
} as const;

/**
 * The API of an image or video service is there and takes the key, at each path that the gateway will ask. Nothing is
 * generated, as that would cost: a path is asked with an empty request, which it refuses.
 */
export function mediaChecks(service: MediaService, target: HttpTarget): readonly Check[] {
  const { primitive, name } = service;
  const { wire = 'openai', edits = false } = service.media.imageApi ?? {};
  const { make, edit } = primitive === 'video' ? { make: '/videos', edit: '' } : IMAGE_PATHS[wire];
  return [
    {
      kind: primitive,
      name,
      async run() {
        const { status } = await ask({ method: 'GET', url: `${target.url}/models`, apiKey: target.apiKey });
        mustTakeKey(status);
        if (status >= 500) throw new ProbeFailure(`answers with status ${status}`);
        await mustHave(target, make);
        return status < 400
          ? `answers, and accepts the key; it has ${make}; nothing was generated`
          : `is reached; it has ${make}, and no list of models to try the key with (status ${status}); nothing was generated`;
      },
    },
    ...(edits
      ? [
          {
            kind: primitive,
            name: `${name}, edits`,
            async run() {
              await mustHave(target, edit);
              return `it has ${edit}; nothing was edited`;
            },
          },
        ]
      : []),
  ];
}

function mustTakeKey(status: number): void {
  if (status === 401 || status === 403) throw new ProbeFailure(`does not accept the key: status ${status}`);
}

async function mustHave({ url, apiKey }: HttpTarget, path: string): Promise<void> {
  const { status } = await ask({ method: 'POST', url: url + path, apiKey, body: {} });
  mustTakeKey(status);
  if (status === 404 || status === 405)
    throw new ProbeFailure(`has no POST ${path} (status ${status}): is params.api_base right?`);
}
