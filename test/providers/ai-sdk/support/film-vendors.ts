import { tinyMp4 } from '../../../media/support/tiny-mp4.ts';
import type { VendorReply, VendorRequest } from './scene.ts';

/* Vendors of videos, each in its own wire. */

/** A film of four seconds. */
export const FILM = tinyMp4(4, 30_000);
const FILM_REPLY: VendorReply = { bytes: FILM, type: 'video/mp4' };

/** What the vendor says of its jobs. A test sets it. */
export interface Studio {
  state: 'runs' | 'done' | 'failed';
}

/** A package, and its vendor as a test plays it. */
export interface FilmVendor {
  readonly name: string;
  /** Name of the provider in the block. Default: `name`. */
  readonly provider?: string;
  readonly sdk?: string;
  readonly settings: (url: string) => Readonly<Record<string, string>>;
  /** Default `apiKey`. */
  readonly secret?: string;
  /** Its vendor's address is in its code. */
  readonly routed?: true;
  readonly model: string;
  /** What it is sent for four seconds in 720p, upright. */
  readonly asks: object;
  readonly answer: (request: VendorRequest, studio: Studio) => VendorReply;
  readonly key: (headers: VendorRequest['headers']) => boolean;
}

export const PROMPT = 'A tollgate in the rain';
const WHY = 'too much rain';
const PARAMETERS = { sampleCount: 1, durationSeconds: 4, resolution: '720p', aspectRatio: '9:16' };

const bearer = (headers: VendorRequest['headers']) => headers['authorization']?.endsWith('er apiKey-secret') === true;
const google = (headers: VendorRequest['headers']) => headers['x-goog-api-key'] === 'apiKey-secret';

/** Google's two APIs: an operation that is asked for, and either an address or the film itself. */
const operation = (state: Studio['state'], response: object): VendorReply => {
  const name = 'projects/acme/locations/europe-west4/models/veo-3/operations/8d6f6c1e-4e34-4f6f-9f0a-7b1f4f2d3c5b';
  if (state === 'runs') return { json: { name, done: false } };
  return { json: state === 'done' ? { name, done: true, response } : { name, done: true, error: { message: WHY } } };
};

export const FILM_VENDORS: readonly FilmVendor[] = [
  {
    name: 'google',
    settings: (url) => ({ baseURL: `${url}/v1beta` }),
    model: 'veo-3.1-generate-preview',
    asks: { instances: [{ prompt: PROMPT }], parameters: PARAMETERS },
    answer({ path, origin }, { state }) {
      if (path.includes('/files/')) return FILM_REPLY;
      if (path.endsWith(':predictLongRunning')) return operation('runs', {});
      const uri = `${origin}/v1beta/files/f:download?alt=media`;
      return operation(state, { generateVideoResponse: { generatedSamples: [{ video: { uri } }] } });
    },
    key: google,
  },
  {
    name: 'google-vertex',
    sdk: '@ai-sdk/google-vertex/edge#createGoogleVertex',
    settings: (url) => ({ baseURL: `${url}/v1/publishers/google` }),
    model: 'veo-3.1-generate-001',
    asks: { instances: [{ prompt: PROMPT }], parameters: PARAMETERS },
    answer({ path }, { state }) {
      if (path.endsWith(':predictLongRunning')) return operation('runs', {});
      return operation(state, { videos: [{ bytesBase64Encoded: FILM.toString('base64'), mimeType: 'video/mp4' }] });
    },
    key: google,
  },
  {
    name: 'xai',
    settings: (url) => ({ baseURL: `${url}/v1` }),
    model: 'grok-imagine-video',
    asks: { model: 'grok-imagine-video', prompt: PROMPT, duration: 4, aspect_ratio: '9:16', resolution: '720p' },
    answer({ method, path, origin }, { state }) {
      if (path.endsWith('.mp4')) return FILM_REPLY;
      if (method === 'POST') return { json: { request_id: 'r-1' } };
      if (state === 'runs') return { json: { status: 'pending', progress: 50 } };
      if (state === 'failed') return { json: { status: 'failed', error: { code: 'moderation', message: WHY } } };
      return { json: { status: 'done', video: { url: `${origin}/film.mp4`, duration: 4, respect_moderation: true } } };
    },
    key: bearer,
  },
  {
    name: 'replicate',
    settings: (url) => ({ baseURL: `${url}/v1` }),
    secret: 'apiToken',
    model: 'acme/film',
    asks: { input: { prompt: PROMPT, aspect_ratio: '9:16', size: '720x1280', duration: 4 } },
    answer({ method, path, origin }, { state }) {
      if (path.endsWith('.mp4')) return FILM_REPLY;
      const job = { id: 'p-1', urls: { get: `${origin}/v1/predictions/p-1` } };
      if (method === 'POST' || state === 'runs') return { json: { ...job, status: 'processing' } };
      if (state === 'failed') return { json: { ...job, status: 'failed', error: WHY } };
      return { json: { ...job, status: 'succeeded', output: `${origin}/film.mp4` } };
    },
    key: bearer,
  },
  {
    name: 'fal',
    settings: (url) => ({ vendor: url }),
    routed: true,
    model: 'acme-film',
    asks: { prompt: PROMPT, aspect_ratio: '9:16', duration: '4s', resolution: '720p' },
    answer({ method, path }, { state }) {
      if (path.endsWith('.mp4')) return FILM_REPLY;
      if (method === 'POST')
        return { json: { request_id: 'q-1', response_url: 'https://queue.fal.run/fal-ai/acme-film/requests/q-1' } };
      if (state === 'runs') return { json: { detail: 'Request is still in progress' }, status: 400 };
      if (state === 'failed') return { json: { error: { message: WHY, code: 422 } }, status: 422 };
      return { json: { video: { url: 'https://v3.fal.media/film.mp4', content_type: 'video/mp4' } } };
    },
    key: (headers) => headers['authorization'] === 'Key apiKey-secret',
  },
];

/** A `[[videos]]` block: 0.1 USD a second in 720p, and 0.05 a video. `secret`: the variable with its secret. */
export function filmBlock(vendor: FilmVendor, url: string, secret: string, more = ''): string {
  const { name, provider = name, sdk = `@ai-sdk/${name}`, settings, secret: key = 'apiKey', model } = vendor;
  const given = Object.entries(settings(url)).map(([field, value]) => `${field} = ${JSON.stringify(value)}`);
  return `
[[videos]]
name = "${name}/film"
provider_name = "${provider}"
durations = ["4s"]
aspect_ratios = ["16:9", "9:16"]
${more}
[videos.pricing]
per_second = { "720p" = 0.1 }
base = 0.05
[videos.params]
model = "${model}"
sdk = "${sdk}"
sdk_settings = { ${given.join(', ')} }
sdk_secrets = { ${key} = "std::env::${secret}" }
`;
}
