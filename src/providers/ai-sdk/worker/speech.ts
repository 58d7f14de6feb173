import type { JsonObject } from '#wire';
import type { SpeechModelV4CallOptions } from '@ai-sdk/provider';
import { type Loaded, modelOf, type WorkerCall } from './worker-call.ts';
import { RequestFault } from './fault.ts';
import { isRecord, numberOf, stringOf } from './json.ts';
import { base64Of } from './members.ts';
import { optionsOf } from './provider-options.ts';
import { toAudioUsage } from './usage.ts';

/** Media types of sound, by the formats of OpenAI's API. */
const TYPES: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
};

/** Answers a request for speech: with the sound, or with events if these are asked for and the package has a usage. */
export async function answerSpeech({ provider }: Loaded, { body, stream, signal }: WorkerCall): Promise<void> {
  const model = modelOf(provider, 'speech', stringOf(body['model']) ?? '');
  if (model === null) throw new RequestFault('This package of the AI SDK makes no speech', { status: 404 });
  const { audio, usage } = await model.doGenerate({ ...toSpeechOptions(body), abortSignal: signal });
  const tokens = toAudioUsage(usage);
  if (stream.destroyed) return;
  if (body['stream_format'] === 'sse' && tokens !== null) {
    stream.respond({ ':status': 200, 'content-type': 'text/event-stream' });
    stream.write(eventOf({ type: 'speech.audio.delta', audio: base64Of(audio) }));
    stream.end(eventOf({ type: 'speech.audio.done', usage: tokens }));
    return;
  }
  const bytes = typeof audio === 'string' ? Buffer.from(audio, 'base64') : audio;
  stream.respond({
    ':status': 200,
    'content-type': TYPES[stringOf(body['response_format']) ?? 'mp3'] ?? 'application/octet-stream',
    'content-length': bytes.byteLength,
  });
  stream.end(bytes);
}

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

function toSpeechOptions(body: JsonObject): SpeechModelV4CallOptions {
  const { input, voice, instructions, response_format: format, speed, provider_options: own } = body;
  const providerOptions = optionsOf(own, 'provider_options');
  const [spoken, instruction, pace] = [
    stringOf(isRecord(voice) ? voice['id'] : voice),
    stringOf(instructions),
    numberOf(speed),
  ];
  return {
    text: stringOf(input) ?? '',
    outputFormat: stringOf(format) ?? 'mp3',
    ...(spoken === undefined ? {} : { voice: spoken }),
    ...(instruction === undefined ? {} : { instructions: instruction }),
    ...(pace === undefined ? {} : { speed: pace }),
    ...(providerOptions ? { providerOptions } : {}),
  };
}
