import { once } from 'node:events';
import { WebSocket } from 'ws';
import { toPng } from '../../../../src/program/demo/png.ts';
import { wavFile } from '../../../openai/audio/support/audio-files.ts';
import type { Row, Usual, World } from './world.ts';

/* Sound, images, videos and realtime sessions. */

const sse = (...events: string[]) => ({
  type: 'text/event-stream',
  body: events.map((event) => `data: ${event}\n\n`).join(''),
});
const json = (body: string) => ({ body });

const WAV = wavFile(1);
const transcription = (fields: Readonly<Record<string, string>>) => (world: World) => {
  const form = new FormData();
  form.set('model', 'm/stt');
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', new Blob([new Uint8Array(WAV)]), 'a.wav');
  return world.ask('/api/v1/audio/transcriptions', form);
};

const PNG = toPng({ width: 8, height: 8, pixels: new Uint8Array(256) }).toString('base64');
const image = (path: string, more: object) => (world: World) =>
  world.ask(path, { model: 'm/image', prompt: 'x', ...more });
const painted = (junk: string) => `{"created":1,"data":[{"b64_json":"${PNG}"}],"junk":${junk}}`;

const video = async (world: World) => {
  const begun = await world.ask('/api/v1/video/queue', { model: 'm/video', prompt: 'x', duration: '4s' });
  const id = /"id":"([^"]+)"/.exec(begun)?.[1];
  return id === undefined ? begun : world.ask('/api/v1/video/retrieve', { task_id: id });
};

/** Sends one event, and waits for one, or for the end of the session. */
async function session(world: World, event: string): Promise<string> {
  const socket = new WebSocket(`${world.gateway.baseUrl.replace('http', 'ws')}/v1/realtime?model=m/realtime`, {
    headers: { authorization: `Bearer ${world.key}` },
    maxPayload: 64 * 1024 * 1024,
  });
  socket.on('error', () => {});
  let heard = 0;
  const answered = Promise.withResolvers<string>();
  socket.on('message', (data) => {
    if (heard++ === 0) socket.send(event);
    else if (/"type":"(?:error|input_audio_buffer.cleared)"/.test(String(data)))
      answered.resolve(String(data).slice(0, 200));
  });
  const closed = once(socket, 'close').then(([code]) => `closed ${code as number}`);
  const said = await Promise.race([answered.promise, closed]);
  socket.close();
  await closed;
  return said;
}

export const MEDIA_ROWS: Readonly<Record<string, Row>> = {
  transcription: {
    bound: 'transcript',
    act: transcription({}),
    answer: (_, junk) => json(`{"text":"x","junk":${junk}}`),
  },
  'transcription with its times': {
    bound: 'transcript',
    act: transcription({ response_format: 'verbose_json' }),
    answer: (_, junk) => json(`{"text":"x","language":"en","duration":1,"segments":[],"words":[],"junk":${junk}}`),
  },
  'transcription stream': {
    bound: 'transcriptEvent',
    act: transcription({ stream: 'true' }),
    answer: (_, junk) =>
      sse(`{"type":"transcript.text.delta","delta":"x","junk":${junk}}`, '{"type":"transcript.text.done","text":"x"}'),
  },
  'transcription stream, its end': {
    bound: 'transcriptEvent',
    act: transcription({ stream: 'true' }),
    answer: (_, junk) => sse(`{"type":"transcript.text.done","text":"x","junk":${junk}}`),
  },
  'image generate': {
    bound: 'image',
    act: image('/api/v1/image/generate', {}),
    answer: (_, junk) => json(painted(junk)),
  },
  'image of OpenAI': {
    bound: 'image',
    act: image('/api/v1/images/generations', {}),
    answer: (_, junk) => json(painted(junk)),
  },
  'image edit': {
    bound: 'image',
    act: image('/api/v1/image/edit', { images: [{ b64: PNG }] }),
    answer: (_, junk) => json(painted(junk)),
  },
  'image stream': {
    bound: 'image',
    act: image('/api/v1/images/generations', { stream: true }),
    answer: (_, junk) =>
      sse(
        `{"type":"image_generation.completed","b64_json":"${PNG}","created_at":1,"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},"junk":${junk}}`,
      ),
  },
  'image, its error': {
    bound: 'providerError',
    act: image('/api/v1/image/generate', {}),
    answer: (_, junk) => ({ status: 400, body: `{"error":{"message":"x","junk":${junk}}}` }),
  },
  'video, its beginning': {
    bound: 'video',
    act: video,
    answer: ({ method }, junk) =>
      method === 'POST' ? json(`{"id":"v1","object":"video","status":"queued","junk":${junk}}`) : null,
  },
  'video, a look at it': {
    bound: 'video',
    act: video,
    answer: ({ method, path }, junk) =>
      method === 'GET' && path.includes('/videos/')
        ? json(`{"id":"v1","object":"video","status":"in_progress","junk":${junk}}`)
        : null,
  },
  'realtime, from the provider': {
    bound: 'realtimeEvent',
    act: (world) => session(world, '{"type":"input_audio_buffer.clear"}'),
    event: (junk) => `{"type":"session.updated","session":{"type":"realtime","junk":${junk}}}`,
  },
  'realtime, an item of the provider': {
    bound: 'realtimeEvent',
    act: (world) => session(world, '{"type":"input_audio_buffer.clear"}'),
    event: (junk) =>
      `{"type":"conversation.item.added","item":{"id":"i","type":"message","role":"user","content":[],"junk":${junk}}}`,
  },
  'realtime, from the client': {
    bound: 'realtimeEvent',
    act: (world, junk) =>
      session(world, `{"type":"conversation.item.create","item":{"type":"message","junk":${junk}}}`),
  },
};

const model = (url: string, name: string, input: string, output: string, wires = '') => `
[[models]]
name = "m/${name}"
provider_name = "Of ${name}"
context_length = 8000
input_modalities = ["${input}"]
output_modalities = ["${output}"]
pricing = { prompt = 0, completion = 0 }
[models.params]
model = "m"
api_base = "${url}/v1"
api_key = "std::env::TEST_UPSTREAM_KEY"
${wires}
`;

export const mediaToml = (url: string): string => `
[limits]
realtime_sessions_max = 1000
requests_per_minute = 1000000
burst = 1000000
[upstream]
cooldown_ms = 1
[media]
free_bytes_min = 0
${model(url, 'stt', 'audio', 'transcription')}
${model(url, 'realtime', 'text', 'text', 'wires = ["realtime"]\nmax_output_tokens = 100')}
[[images]]
name = "m/image"
provider_name = "Painter"
supported_params = ["stream"]
pricing = { generation = 0 }
[images.params]
model = "m"
api_base = "${url}/v1"
api_key = "std::env::TEST_UPSTREAM_KEY"
edits = true
[[videos]]
name = "m/video"
provider_name = "Filmer"
durations = ["4s"]
pricing = { per_second = { "720p" = 0.001 } }
[videos.params]
model = "m"
api_base = "${url}/v1"
api_key = "std::env::TEST_UPSTREAM_KEY"
`;

export const mediaUsual: Usual = ({ method, path }) => {
  if (path.includes('/videos'))
    return json(
      `{"id":"v1","object":"video","status":"${method === 'POST' ? 'queued' : 'failed'}","error":{"message":"x"}}`,
    );
  return { status: 404, body: '{}' };
};
