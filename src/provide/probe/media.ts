import type { HttpTarget, Service } from '#config';
import { ask } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

type MediaService = Extract<Service, { primitive: 'image' | 'video' }>;

/** The API of an image or video service is there and takes the key. Nothing is generated: that would cost. */
export function mediaCheck(service: MediaService, target: HttpTarget): Check {
  return {
    kind: service.primitive,
    name: service.name,
    async run() {
      const { status } = await ask({ method: 'GET', url: `${target.url}/models`, apiKey: target.apiKey });
      if (status === 401 || status === 403) throw new ProbeFailure(`does not accept the key: status ${status}`);
      if (status >= 500) throw new ProbeFailure(`answers with status ${status}`);
      return status < 400
        ? 'answers, and accepts the key; nothing was generated'
        : `is reached; it has no list of models to try the key with (status ${status}); nothing was generated`;
    },
  };
}
